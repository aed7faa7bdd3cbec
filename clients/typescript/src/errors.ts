/**
 * How calls fail: one family of errors, made from what the server or gRPC says.
 *
 * `reason` is what to branch on where a class is too coarse: a word of the contract (ErrorInfo.reason), stable, and empty
 * when no service answered, but gRPC or something on the way. The text is for people and not stable.
 */

import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { Any, Duration } from "@bufbuild/protobuf/wkt";
import { status as Status } from "@grpc/grpc-js";
import type { ServiceError } from "@grpc/grpc-js";

import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "./gen/google/rpc/status_pb.js";

const DOMAIN = "laneway";
const DETAILS_KEY = "grpc-status-details-bin";

/** What a status carries beside its code and text. */
export interface Details {
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly field: string;
  readonly retryAfterMs: number | undefined;
}

export const NO_DETAILS: Details = Object.freeze({
  reason: "",
  metadata: Object.freeze({}),
  field: "",
  retryAfterMs: undefined,
});

/** A call that failed. This class itself: a failure that has no class of its own here. */
export class LanewayError extends Error {
  /** The contract's reason, for programs; empty when no Laneway service gave one. */
  readonly reason: string;
  /** What goes with the reason: `field`, `run_id`, `earliest_seq`, `latest_seq`, `earliest_cursor` ... */
  readonly metadata: Readonly<Record<string, string>>;
  /** The field of the request that was refused; empty when it is not about one. */
  readonly field: string;
  /** Milliseconds after which the server suggests another try; undefined when it suggests none. */
  readonly retryAfterMs: number | undefined;
  /** How often the call was made before it was given up. */
  attempts = 1;

  constructor(
    /** The gRPC status. */
    readonly status: Status,
    /** The server's text, for people. */
    readonly details: string,
    carried: Details = NO_DETAILS,
    options?: ErrorOptions,
  ) {
    super(`${details || "no details"} (${carried.reason || Status[status]})`, options);
    this.name = new.target.name;
    this.reason = carried.reason;
    this.metadata = carried.metadata;
    this.field = carried.field;
    this.retryAfterMs = carried.retryAfterMs;
  }
}

/** INVALID_ARGUMENT: the same request will always be refused; `field` names the culprit where there is one. */
export class InvalidRequestError extends LanewayError {}

/** NOT_FOUND: the run, session, agent or entry does not exist, or retention has removed it. */
export class NotFoundError extends LanewayError {}

/** ALREADY_EXISTS: the idempotency key belongs to another request. */
export class IdempotencyKeyReusedError extends LanewayError {}

/** FAILED_PRECONDITION: not in this state of the service, for example MODEL_NOT_CONFIGURED, SESSION_ACTIVE. */
export class PreconditionFailedError extends LanewayError {}

/** OUT_OF_RANGE: the log does not go on where the reader stands. */
export class CursorError extends LanewayError {
  /** The oldest event of the run that is still stored; undefined for sessions and `all`. */
  get earliestSeq(): bigint | undefined {
    return numberIn(this.metadata["earliest_seq"]);
  }

  /** The newest event of the run; undefined for sessions and `all`. */
  get latestSeq(): bigint | undefined {
    return numberIn(this.metadata["latest_seq"]);
  }

  /** The cursor to subscribe with in order to read from the oldest stored event; empty when there is none. */
  get earliestCursor(): string {
    return this.metadata["earliest_cursor"] ?? "";
  }
}

/** Events between the reader and the oldest stored one are gone: go on at `earliestSeq` or `earliestCursor`. */
export class CursorPrunedError extends CursorError {}

/** The reader stands above the last stored event: its position is of another store, or of one put back in time. */
export class CursorAheadError extends CursorError {}

/**
 * RESOURCE_EXHAUSTED: nothing was done; try again later, `retryAfterMs` says when. Also a message that is too large for
 * gRPC, then without a reason.
 */
export class LimitReachedError extends LanewayError {}

/**
 * UNAVAILABLE: no server could be reached in the time given, or it is leaving (DRAINING), or it cannot write
 * (STORE_UNAVAILABLE). What was asked for may have happened unless the reason is DRAINING.
 */
export class UnavailableError extends LanewayError {}

/** DEADLINE_EXCEEDED: no answer came in time. What was asked for may have happened. */
export class DeadlineExceededError extends LanewayError {}

/** UNIMPLEMENTED: this server cannot do that (NOT_AVAILABLE_YET names the field), or it is no Laneway server. */
export class NotAvailableError extends LanewayError {}

/** The client was closed before or during the call. */
export class ClientClosedError extends LanewayError {
  constructor() {
    super(Status.CANCELLED, "the client was closed");
  }
}

const BY_REASON: Readonly<Record<string, typeof LanewayError>> = {
  CURSOR_PRUNED: CursorPrunedError,
  CURSOR_AHEAD: CursorAheadError,
};

const BY_STATUS: Readonly<Partial<Record<Status, typeof LanewayError>>> = {
  [Status.INVALID_ARGUMENT]: InvalidRequestError,
  [Status.NOT_FOUND]: NotFoundError,
  [Status.ALREADY_EXISTS]: IdempotencyKeyReusedError,
  [Status.FAILED_PRECONDITION]: PreconditionFailedError,
  [Status.OUT_OF_RANGE]: CursorError,
  [Status.RESOURCE_EXHAUSTED]: LimitReachedError,
  [Status.UNAVAILABLE]: UnavailableError,
  [Status.DEADLINE_EXCEEDED]: DeadlineExceededError,
  [Status.UNIMPLEMENTED]: NotAvailableError,
};

/** The error of the class that fits. */
export function makeError(
  status: Status,
  text: string,
  details: Details = NO_DETAILS,
  options?: ErrorOptions,
): LanewayError {
  const ErrorClass = BY_REASON[details.reason] ?? BY_STATUS[status] ?? LanewayError;
  return new ErrorClass(status, text, details, options);
}

/** What gRPC gave, as an error of ours; the original is its `cause`. */
export function errorOf(error: ServiceError): LanewayError {
  const encoded = error.metadata.get(DETAILS_KEY)[0];
  const details = encoded instanceof Uint8Array ? readDetails(encoded) : NO_DETAILS;
  return makeError(error.code, error.details, details, { cause: error });
}

/**
 * The details in an encoded google.rpc.Status; none when it does not parse. An ErrorInfo of another domain is of something
 * on the way, and gives no reason.
 */
export function readDetails(encoded: Uint8Array): Details {
  try {
    return detailsIn(fromBinary(StatusSchema, encoded).details);
  } catch {
    return NO_DETAILS;
  }
}

function detailsIn(packed: readonly Any[]): Details {
  let reason = "";
  let metadata: Readonly<Record<string, string>> = NO_DETAILS.metadata;
  let violated = "";
  let retryAfterMs: number | undefined;
  for (const detail of packed) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info?.domain === DOMAIN) {
      ({ reason, metadata } = info);
    }
    violated ||= anyUnpack(detail, BadRequestSchema)?.fieldViolations.find(({ field }) => field)?.field ?? "";
    const retry = anyUnpack(detail, RetryInfoSchema);
    if (retry) {
      retryAfterMs = millisecondsOf(retry.retryDelay);
    }
  }
  return { reason, metadata, field: metadata["field"] || violated, retryAfterMs };
}

function millisecondsOf(duration: Duration | undefined): number {
  return duration ? Math.max(0, Number(duration.seconds) * 1e3 + duration.nanos / 1e6) : 0;
}

function numberIn(text: string | undefined): bigint | undefined {
  return text !== undefined && /^-?\d+$/.test(text) ? BigInt(text) : undefined;
}
