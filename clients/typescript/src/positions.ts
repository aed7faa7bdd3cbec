/** Where a subscription stands: which messages are new, and what to ask for after a lost connection. Pure. */

import { clone, create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";

import type { LanewayError } from "./errors.js";
import { SubscribeRequestSchema } from "./gen/laneway/v1/agent_pb.js";
import type { SubscribeRequest } from "./gen/laneway/v1/agent_pb.js";
import { LifecyclePhase } from "./gen/laneway/v1/event_pb.js";
import type { Event, SnapshotEvent } from "./gen/laneway/v1/event_pb.js";

/** Whether `event` is the last one of its run. */
export function isTerminal(event: Event): boolean {
  const { payload } = event;
  return (
    payload.case === "lifecycle" &&
    (payload.value.phase === LifecyclePhase.END || payload.value.phase === LifecyclePhase.ERROR)
  );
}

/** The position of one subscription, from its first request to its end, over any number of connections. */
export class Position {
  /** What to subscribe with now. */
  readonly request: SubscribeRequest;
  /** The terminal event of the run was taken. */
  isAtEnd = false;
  readonly #isOfRun: boolean;
  #hasEvents = false;

  constructor(request: MessageInitShape<typeof SubscribeRequestSchema>) {
    this.request = clone(SubscribeRequestSchema, create(SubscribeRequestSchema, request));
    this.#isOfRun = this.request.target.case === "runId";
  }

  /** Move on to `event`; whether the reader is to get it: stored events it has not got, and the first snapshot. */
  take(event: Event): boolean {
    if (event.payload.case === "snapshot") {
      return this.#takeSnapshot(event.payload.value);
    }
    if (event.payload.case === "progress" && !this.#isOfRun && event.payload.value.cursor) {
      this.request.cursor = event.payload.value.cursor;
    }
    if (event.seq <= 0n) {
      return false;
    }
    if (this.#isOfRun) {
      if (this.request.afterSeq !== undefined && event.seq <= this.request.afterSeq) {
        return false;
      }
      this.request.afterSeq = event.seq;
      this.isAtEnd = isTerminal(event);
    } else {
      this.request.cursor = event.cursor;
    }
    this.#hasEvents = true;
    return true;
  }

  #takeSnapshot(snapshot: SnapshotEvent): boolean {
    const isFirst = this.#isOfRun && this.request.afterSeq === undefined;
    if (isFirst) {
      // From here on the events are asked for, so that no second snapshot comes.
      this.request.afterSeq = snapshot.firstSeq > 0n ? snapshot.firstSeq - 1n : 0n;
    }
    return isFirst;
  }

  /** The stream ended with `error`: a server that leaves says where the reader stands. */
  lose(error: LanewayError): void {
    const cursor = error.metadata["cursor"];
    if (error.reason === "DRAINING" && cursor && !this.#isOfRun) {
      this.request.cursor = cursor;
    }
  }

  /**
   * Whether a stream that ended with OK has told everything: a run without further events. Any other target has no end,
   * and a run of which there were events ends with its terminal event.
   */
  get mayEnd(): boolean {
    return this.#isOfRun && !this.#hasEvents;
  }
}
