/** Everything that a user of the package needs: the client, its errors, and the messages of `laneway.v1`. */

export { ChannelCredentials, credentials, status } from "@grpc/grpc-js";

export { DEFAULT_TIMEOUTS } from "./calls.js";
export type { CallMetadata, CallOptions, DeadlineOptions, Loss, OnLoss, Timeouts } from "./calls.js";
export { CHANNEL_OPTIONS } from "./channels.js";
export { LanewayClient } from "./client.js";
export type { AbortOptions, AbortSessionOptions, AgentInput, ClientOptions, RunOptions } from "./client.js";
export { serviceDefinition } from "./definitions.js";
export {
  ClientClosedError,
  CursorAheadError,
  CursorError,
  CursorPrunedError,
  DeadlineExceededError,
  IdempotencyKeyReusedError,
  InvalidRequestError,
  LanewayError,
  LimitReachedError,
  NotAvailableError,
  NotFoundError,
  PreconditionFailedError,
  UnavailableError,
} from "./errors.js";
export { isTerminal } from "./positions.js";
export type {
  EndSessionOptions,
  ForkSessionOptions,
  ListSessionsOptions,
  SessionCalls,
  SessionUpdate,
} from "./sessions.js";
export { hasEnded } from "./waits.js";
export type { WaitOptions } from "./waits.js";

export * from "./gen/laneway/v1/admin_pb.js";
export * from "./gen/laneway/v1/agent_pb.js";
export * from "./gen/laneway/v1/approval_types_pb.js";
export * from "./gen/laneway/v1/event_pb.js";
export * from "./gen/laneway/v1/run_pb.js";
export * from "./gen/laneway/v1/session_pb.js";
