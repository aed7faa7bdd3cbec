/** A service in this process, over a real socket, that does what a test says. */

import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { create, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";

import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { AgentService, EventSchema, LifecyclePhase, RunState, serviceDefinition } from "../../src/index.js";
import type { AgentRequest, Event, SubscribeRequest, WaitRequest } from "../../src/index.js";

/** What a refusal carries. */
export interface Refusal {
  readonly code: grpc.status;
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Record<string, string>;
  readonly violatedField?: string;
  readonly retryAfterMs?: number;
}

/** The encoded google.rpc.Status of a refusal. */
export function detailsOf(refusal: Refusal): Uint8Array {
  const { reason, domain = "laneway", metadata = {}, violatedField, retryAfterMs } = refusal;
  const details = [];
  if (reason !== undefined) {
    details.push(anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain, metadata })));
  }
  if (violatedField !== undefined) {
    const fieldViolations = [{ field: violatedField }];
    details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
  }
  if (retryAfterMs !== undefined) {
    const retryDelay = durationFromMs(retryAfterMs);
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  return toBinary(StatusSchema, create(StatusSchema, { code: refusal.code, details }));
}

/** A refusal as gRPC gives it to a client, and takes it from a handler. */
export function refused(refusal: Refusal): grpc.ServiceError {
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(detailsOf(refusal)));
  return Object.assign(new Error("refused"), { code: refusal.code, details: "refused", metadata });
}

/** An event in the middle of a run. */
export function piece(seq: number): Event {
  const payload = { case: "assistant", value: { messageId: "m", delta: "x" } } as const;
  return event({ seq: BigInt(seq), cursor: `c${seq}`, payload });
}

/** The terminal event of a run. */
export function end(seq: number): Event {
  const value = { phase: LifecyclePhase.END, state: RunState.SUCCEEDED };
  return event({ seq: BigInt(seq), cursor: `c${seq}`, payload: { case: "lifecycle", value } });
}

export function event(fields: MessageInitShape<typeof EventSchema>): Event {
  return create(EventSchema, { runId: "run_1", ...fields } as MessageInitShape<typeof EventSchema>);
}

/** What one call of Subscribe gets: events, then OK, a refusal, or nothing more until the caller leaves. */
export interface Reading {
  readonly events?: readonly Event[];
  readonly ending?: grpc.ServiceError | "end" | "silence";
}

type Answer<Response> = Response | grpc.ServiceError | "silence";

/** Answers in the order of the script; the last one again and again. */
export class ScriptedService {
  readonly target = `unix:${join(tmpdir(), `laneway-${randomUUID().slice(0, 8)}.sock`)}`;
  readonly agents: AgentRequest[] = [];
  readonly subscriptions: SubscribeRequest[] = [];
  readonly waits: WaitRequest[] = [];
  readonly metadata: grpc.Metadata[] = [];
  agentAnswers: Answer<object>[] = [];
  waitAnswers: Answer<object>[] = [];
  readings: Reading[] = [];
  /** The numbers of those calls of Subscribe, from 1, that their callers have left while they stood open. */
  readonly cancelled: number[] = [];
  readonly #server = new grpc.Server();
  #noticeCancel: () => void = () => undefined;

  constructor() {
    this.#server.addService(serviceDefinition(AgentService), {
      agent: unary(this.agents, this.metadata, () => next(this.agentAnswers)),
      wait: unary(this.waits, this.metadata, () => next(this.waitAnswers)),
      subscribe: (call: grpc.ServerWritableStream<SubscribeRequest, Event>) => this.#subscribe(call),
    });
  }

  async start(credentials = grpc.ServerCredentials.createInsecure(), target = this.target): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(target, credentials, (error, port) => (error ? reject(error) : resolve(port)));
    });
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  /** Return when `count` callers of Subscribe have left. */
  async cancellations(count: number): Promise<void> {
    while (this.cancelled.length < count) {
      await new Promise<void>((resolve) => {
        this.#noticeCancel = resolve;
      });
    }
  }

  #subscribe(call: grpc.ServerWritableStream<SubscribeRequest, Event>): void {
    const number = this.subscriptions.push(call.request);
    const { events = [], ending = "end" } = next(this.readings);
    for (const each of events) call.write(each);
    if (ending === "end") {
      call.end();
    } else if (ending === "silence") {
      call.on("cancelled", () => {
        this.cancelled.push(number);
        this.#noticeCancel();
      });
    } else {
      call.emit("error", ending);
    }
  }
}

function next<Item>(script: Item[]): Item {
  const item = script.length > 1 ? script.shift() : script[0];
  if (item === undefined) throw new Error("the script has no answer for this call");
  return item;
}

function unary<Request>(
  requests: Request[],
  metadata: grpc.Metadata[],
  answer: () => Answer<object>,
): grpc.handleUnaryCall<Request, object> {
  return (call, respond) => {
    requests.push(call.request);
    metadata.push(call.metadata);
    const chosen = answer();
    if (chosen === "silence") return;
    if (chosen instanceof Error) {
      respond(chosen);
    } else {
      respond(null, chosen);
    }
  };
}
