/** One server stream of gRPC, read message by message under its flow control. */

import { status as Status } from "@grpc/grpc-js";
import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import { LanewayError, errorOf, makeError } from "./errors.js";
import { onAbort } from "./signals.js";

/** A stream that ends by silence or a signal too. `close` it in `finally`. */
export class MessageStream<Message> {
  readonly #call: ClientReadableStream<Message>;
  readonly #silenceMs: number | undefined;
  readonly #messages: AsyncIterator<Message>;
  readonly #stop: () => void;
  #interruption: { readonly reason: unknown } | undefined;

  constructor(
    call: ClientReadableStream<Message>,
    silenceMs: number | undefined,
    signals: readonly (AbortSignal | undefined)[],
  ) {
    this.#call = call;
    this.#silenceMs = silenceMs;
    // What gRPC says after the stream was left is nobody's business, and without a listener it would end the process.
    call.on("error", () => undefined);
    this.#messages = call[Symbol.asyncIterator]() as AsyncIterator<Message>;
    this.#stop = onAbort(signals, (reason) => this.#interrupt(reason));
  }

  /** The next message; undefined after the last one. Throws LanewayError; DeadlineExceededError after the silence. */
  async next(): Promise<Message | undefined> {
    const silenceMs = this.#silenceMs;
    const timer =
      silenceMs === undefined
        ? undefined
        : setTimeout(() => {
            const text = `nothing was heard on the stream for ${silenceMs / 1e3} s`;
            this.#interrupt(makeError(Status.DEADLINE_EXCEEDED, text));
          }, silenceMs);
    try {
      const { done, value } = await this.#messages.next();
      return done ? undefined : value;
    } catch (error) {
      throw this.#failure(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Cancel it. Idempotent. */
  close(): void {
    this.#stop();
    this.#call.cancel();
    this.#call.destroy();
  }

  #interrupt(reason: unknown): void {
    this.#interruption ??= { reason };
    this.#call.cancel();
    this.#call.destroy(new Error("interrupted"));
  }

  #failure(error: unknown): unknown {
    if (this.#interruption) {
      return this.#interruption.reason;
    }
    return error instanceof LanewayError || !isServiceError(error) ? error : errorOf(error);
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error;
}
