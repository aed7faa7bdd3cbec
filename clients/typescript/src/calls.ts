/**
 * Makes calls: bounded in time, repeated where that is safe, failures as errors of this package.
 *
 * Rules are in `retries`; here is the shell that asks and then acts. Every call is cancelled when it is left: one that is
 * only dropped would live on in gRPC.
 */

import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";

import { decoder, encode, pathOf } from "./definitions.js";
import { ClientClosedError, LanewayError, NO_DETAILS, errorOf, makeError } from "./errors.js";
import { Losses, isLost, pauseAfter } from "./retries.js";
import { onAbort, sleep } from "./signals.js";
import { MessageStream } from "./streams.js";

/** How long a client waits for a server, in milliseconds. Times that the server may take by contract come on top. */
export interface Timeouts {
  /**
   * How long a server is looked for that this client has never heard of, unless a call has a deadline of its own: who gives
   * a wrong address, or has started none, learns it soon.
   */
  readonly connectMs: number;
  /**
   * How long a call is repeated, unless it has a deadline of its own, and how long a stream looks for a lost server: longer
   * than the restart of a server.
   */
  readonly patienceMs: number;
  /** How long one attempt of a call may take before it is given up and repeated. */
  readonly attemptMs: number;
  /** The longest single Wait; longer waits are several. A short one survives proxies that end quiet calls. */
  readonly oneWaitMs: number;
  /** A stream that says nothing for so long is taken up again; the server gives a sign of life after 15 s. */
  readonly silenceMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  connectMs: 10_000,
  patienceMs: 60_000,
  attemptMs: 10_000,
  oneWaitMs: 60_000,
  silenceMs: 30_000,
});

/** A failure that is about to be repeated. */
export interface Loss {
  readonly error: LanewayError;
  /** In a row, from 1. */
  readonly number: number;
  /** After it the next attempt is made. */
  readonly pauseMs: number;
}

/** Awaited before each repetition; what it throws ends the call. */
export type OnLoss = (loss: Loss) => void | Promise<void>;

/** What goes with every call; a function is asked anew for each. */
export type CallMetadata = Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);

/** What every call takes. */
export interface CallOptions {
  /** Ends the call, which then throws the signal's reason. A run goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** What calls take that have a time limit of their own. */
export interface DeadlineOptions extends CallOptions {
  /** How long the call is made, repetitions included; without it `Timeouts.patienceMs`, and `connectMs` at first. */
  readonly deadlineMs?: number | undefined;
}

/** What a Caller is made from. */
export interface CallerSettings {
  /** Where the server is, for people. */
  readonly target: string;
  readonly timeouts: Timeouts;
  readonly metadata: CallMetadata;
  readonly onLoss: OnLoss | undefined;
}

interface Attempt extends CallOptions {
  readonly limitMs: number;
  /** Not fail at once when there is no connection, because there will be no second attempt. */
  readonly waitsForServer?: boolean;
}

/** Makes the calls of one client. */
export class Caller {
  readonly timeouts: Timeouts;
  readonly #channel: grpc.Client;
  readonly #settings: CallerSettings;
  readonly #closing = new AbortController();
  #hasHeard = false;

  constructor(channel: grpc.Client, settings: CallerSettings) {
    this.#channel = channel;
    this.#settings = settings;
    this.timeouts = settings.timeouts;
  }

  /** End all calls with ClientClosedError, and the connection. */
  close(): void {
    this.#closing.abort(new ClientClosedError());
    this.#channel.close();
  }

  /** How long a lost server is looked for; shorter as long as none has ever answered. */
  get patienceMs(): number {
    const { connectMs, patienceMs } = this.timeouts;
    return this.#hasHeard ? patienceMs : Math.min(connectMs, patienceMs);
  }

  /** Whether a server has ever answered. */
  get hasHeard(): boolean {
    return this.#hasHeard;
  }

  /** There is a server at the other end. */
  heard(): void {
    this.#hasHeard = true;
  }

  /** The losses of a stream or of a wait without end. Their time begins with a loss, but that for the first server now. */
  losses(): Losses {
    return new Losses(() => this.patienceMs, this.#hasHeard ? undefined : this.now());
  }

  /** Milliseconds of the monotonic clock. */
  now(): number {
    return performance.now();
  }

  /** The answer of one attempt. Throws LanewayError after `limitMs` at the latest. */
  once<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    attempt: Attempt,
  ): Promise<MessageShape<O>> {
    return this.#attempt(method, encode(method.input, request), attempt);
  }

  /** The answer of a call that must not be repeated. */
  async onlyOnce<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    { deadlineMs, signal }: DeadlineOptions = {},
  ): Promise<MessageShape<O>> {
    const limitMs = deadlineMs ?? this.patienceMs;
    try {
      return await this.once(method, request, { limitMs, waitsForServer: true, signal });
    } catch (error) {
      throw this.#explained(error, limitMs);
    }
  }

  /**
   * The answer of a call that may be repeated, made until `deadlineMs` is over. Each attempt sends the same bytes.
   *
   * `answerMs`: how long the server may take for its answer. Throws the last LanewayError.
   */
  async repeat<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    { deadlineMs, signal }: DeadlineOptions = {},
    answerMs = 0,
  ): Promise<MessageShape<O>> {
    const bytes = encode(method.input, request);
    const began = this.now();
    const losses = new Losses(() => deadlineMs ?? this.patienceMs, began);
    for (;;) {
      const leftMs = began + losses.patienceMs - this.now();
      try {
        const limitMs = Math.min(leftMs, this.timeouts.attemptMs + answerMs);
        return await this.#attempt(method, bytes, { limitMs, signal });
      } catch (error) {
        await this.pause(losses, error, signal);
      }
    }
  }

  /** The items of all pages, read while they are iterated. */
  async *pages<I extends DescMessage, O extends DescMessage, Item>(
    method: DescMethodUnary<I, O>,
    request: (pageToken: string) => MessageInitShape<I>,
    read: (page: MessageShape<O>) => readonly [items: readonly Item[], nextPageToken: string],
    options: CallOptions = {},
  ): AsyncGenerator<Item, void, undefined> {
    let pageToken = "";
    do {
      const [items, nextPageToken] = read(await this.repeat(method, request(pageToken), options));
      yield* items;
      pageToken = nextPageToken;
    } while (pageToken);
  }

  /** Begin a server stream, without a deadline. `close` it in `finally`. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions & { readonly silenceMs: number | undefined; readonly waitsForServer?: boolean },
  ): MessageStream<MessageShape<O>> {
    this.#closing.signal.throwIfAborted();
    options.signal?.throwIfAborted();
    const call = this.#channel.makeServerStreamRequest(
      pathOf(method),
      asItIs,
      decoder(method.output),
      encode(method.input, request),
      this.#metadata(options.waitsForServer ?? false),
      {},
    );
    return new MessageStream(call, options.silenceMs, [this.#closing.signal, options.signal]);
  }

  /** Return when there is a connection. Throws UnavailableError after `attemptMs`, or `connectMs` if that is less. */
  connected({ signal }: CallOptions = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = onAbort([this.#closing.signal, signal], reject);
      this.#channel.waitForReady(Date.now() + Math.min(this.timeouts.attemptMs, this.patienceMs), (error) => {
        stop();
        if (error) {
          reject(makeError(grpc.status.UNAVAILABLE, error.message, undefined, { cause: error }));
        } else {
          resolve();
        }
      });
    });
  }

  /** As `connected`, for what is tried once; then the error says what to do. */
  async found(options: CallOptions = {}): Promise<void> {
    const limitMs = Math.min(this.timeouts.attemptMs, this.patienceMs);
    try {
      await this.connected(options);
    } catch (error) {
      throw this.#explained(error, limitMs);
    }
  }

  /** Return when the next attempt is due. Throws `error` when there is to be none. */
  async pause(losses: Losses, error: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (!(error instanceof LanewayError)) {
      throw error;
    }
    const pauseMs = losses.pauseFor(error, this.now(), Math.random());
    if (pauseMs === undefined) {
      const explained = this.#explained(error, losses.patienceMs);
      explained.attempts = Math.max(1, losses.count);
      throw explained;
    }
    await this.#settings.onLoss?.({ error, number: losses.count, pauseMs });
    await sleep(pauseMs, [this.#closing.signal, signal]);
  }

  /** Pause before asking a server again that has answered and is about to leave, for the `times`-th time. */
  async rest(times: number, atMostMs: number, signal: AbortSignal | undefined): Promise<void> {
    await sleep(Math.min(pauseAfter(times, Math.random()), atMostMs), [this.#closing.signal, signal]);
  }

  #attempt<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    bytes: Buffer,
    { limitMs, signal, waitsForServer = false }: Attempt,
  ): Promise<MessageShape<O>> {
    const signals = [this.#closing.signal, signal];
    return new Promise((resolve, reject) => {
      for (const each of signals) each?.throwIfAborted();
      const call = this.#channel.makeUnaryRequest(
        pathOf(method),
        asItIs,
        decoder(method.output),
        bytes,
        this.#metadata(waitsForServer),
        { deadline: Date.now() + limitMs },
        (error, answer) => {
          stop();
          if (error) {
            const failure = errorOf(error);
            if (failure.reason || !isLost(failure)) this.heard();
            reject(failure);
          } else {
            this.heard();
            // Without an error there is an answer.
            resolve(answer as MessageShape<O>);
          }
        },
      );
      const stop = onAbort(signals, (reason) => {
        reject(reason);
        call.cancel();
      });
    });
  }

  /** `error`, or if nobody has ever answered, the same with what to do about it. */
  #explained<Failure>(error: Failure, waitedMs: number): Failure | LanewayError {
    if (this.#hasHeard || !(error instanceof LanewayError) || !isLost(error)) {
      return error;
    }
    const text =
      `no server has answered at ${this.#settings.target} within ${waitedMs / 1e3} s: start one with \`laneway serve\`, ` +
      `or give its address to LanewayClient (${error.details || "no details"})`;
    return makeError(error.status, text, NO_DETAILS, { cause: error.cause ?? error });
  }

  #metadata(waitForReady: boolean): grpc.Metadata {
    const { metadata } = this.#settings;
    const sent = new grpc.Metadata({ waitForReady });
    for (const [key, value] of Object.entries(typeof metadata === "function" ? metadata() : metadata)) {
      sent.set(key, value);
    }
    return sent;
  }
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}
