/**
 * The client of a Laneway server: what `laneway.v1` offers, with the repetitions and resumptions that make it reliable.
 *
 * Requests and answers are the messages of `laneway.v1`; failures are LanewayError. A server may restart, leave, stand
 * still or be cut off at any moment: no message is run twice, no event is lost or doubled, and every call ends within a time
 * that is said.
 */

import { randomUUID } from "node:crypto";

import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ChannelCredentials, ChannelOptions } from "@grpc/grpc-js";

import { Caller, DEFAULT_TIMEOUTS } from "./calls.js";
import type { CallMetadata, CallOptions, DeadlineOptions, OnLoss, Timeouts } from "./calls.js";
import { openChannel } from "./channels.js";
import { AdminService } from "./gen/laneway/v1/admin_pb.js";
import type { AuditRecord, GetStatusResponse, ListAuditRecordsRequestSchema } from "./gen/laneway/v1/admin_pb.js";
import { AgentService } from "./gen/laneway/v1/agent_pb.js";
import type {
  AbortResponse,
  Agent,
  AgentRequestSchema,
  ListRunsRequestSchema,
  Model,
  SubscribeRequestSchema,
  Tool,
  Verbosity,
  WaitResponse,
} from "./gen/laneway/v1/agent_pb.js";
import { EventSchema } from "./gen/laneway/v1/event_pb.js";
import type { Event } from "./gen/laneway/v1/event_pb.js";
import type { AgentResponse, Run } from "./gen/laneway/v1/run_pb.js";
import { SessionCalls } from "./sessions.js";
import { follow } from "./subscriptions.js";
import { waitForEnd } from "./waits.js";
import type { WaitOptions } from "./waits.js";

/** An abort answers after so long at the latest. */
const ABORT_ANSWER_MS = 5_000;

/** A message for an agent: the fields of AgentRequest, or its text only. */
export type AgentInput = MessageInitShape<typeof AgentRequestSchema> | string;

/** How a client is set up. */
export interface ClientOptions {
  /** For example `credentials.createSsl(ca)`. Without them nothing is encrypted. */
  readonly credentials?: ChannelCredentials | undefined;
  /** Goes with every call. */
  readonly metadata?: CallMetadata | undefined;
  /** What differs from DEFAULT_TIMEOUTS. */
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Awaited before each repetition, for logs and counters. */
  readonly onLoss?: OnLoss | undefined;
  /** Win over CHANNEL_OPTIONS. */
  readonly channelOptions?: ChannelOptions | undefined;
}

/** What `run` takes. */
export interface RunOptions extends DeadlineOptions {
  /** `Verbosity.FULL` shows the results of tools. */
  readonly verbose?: Verbosity | undefined;
}

/** What `abort` takes. */
export interface AbortOptions extends DeadlineOptions {
  /** Free text, stored with the run. */
  readonly reason?: string | undefined;
}

/** What `abortSession` takes. */
export interface AbortSessionOptions extends AbortOptions {
  /** Cancel what waits in the session first. */
  readonly clearQueued?: boolean | undefined;
}

/**
 * A connection to one server, made when it is first needed and again whenever it was lost. `close` it to end all that it
 * still does. For calls it does not offer, make bare stubs with `serviceDefinition`.
 */
export class LanewayClient {
  /** The calls about sessions. */
  readonly sessions: SessionCalls;
  readonly #caller: Caller;

  /** `target` is gRPC's: `host:port`, `unix:/path`, `dns:///name:port`. */
  constructor(
    readonly target: string,
    { credentials, metadata = {}, timeouts, onLoss, channelOptions = {} }: ClientOptions = {},
  ) {
    this.#caller = new Caller(openChannel(target, credentials, channelOptions), {
      target,
      timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts },
      metadata,
      onLoss,
    });
    this.sessions = new SessionCalls(this.#caller);
  }

  /** End the connection; calls under way end with ClientClosedError, runs go on. Idempotent. */
  close(): void {
    this.#caller.close();
  }

  // --- runs ------------------------------------------------------------------------------------------------------------

  /**
   * Hand over a message; the answer says that it is durable and will be run once.
   *
   * Repeated with one idempotency key, that of the request or a new one, until `deadlineMs` is over, as long as the server
   * is unavailable or does not answer; it pauses as long as the server suggests. Throws LanewayError: UnavailableError and
   * DeadlineExceededError leave open whether the message was accepted, so give a key of your own if you want to ask again;
   * all others mean that it was not.
   */
  agent(request: AgentInput, options: DeadlineOptions = {}): Promise<AgentResponse> {
    return this.#caller.repeat(AgentService.method.agent, withKey(request), options);
  }

  /**
   * Hand over a message and read its run to the end: first `accepted`, then every event once and in order; the last one is
   * terminal (`isTerminal`). A command in a message (disposition COMPLETED) has no run: `accepted` with its `reply` is all.
   *
   * `agent` and `subscribe` in one, with what they promise and throw; `deadlineMs` is for the acceptance. A key that was
   * used before replays its run from the start. Leaving the iteration leaves the run to the server: `abort` it if nobody
   * wants it.
   */
  async *run(
    request: AgentInput,
    { verbose, signal, deadlineMs }: RunOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const accepted = await this.agent(request, { signal, deadlineMs });
    const { runId, sessionKey, agentId } = accepted;
    yield create(EventSchema, { runId, sessionKey, agentId, payload: { case: "accepted", value: accepted } });
    if (runId === "") return;
    const log = { target: { case: "runId", value: runId }, afterSeq: 0n } as const;
    yield* this.subscribe(verbose === undefined ? log : { ...log, verbose }, { signal });
  }

  /**
   * Read the log of a run, a session or everything, over any number of lost connections and restarts.
   *
   * Yields each stored event above `afterSeq` or `cursor` once and in order, before them a `snapshot` if a run is read
   * without `afterSeq`; signs of life are not yielded. Ends after a run's terminal event; the other targets do not end. To
   * go on later, keep `seq` (a run) or `cursor` of the last event. Without `cursor`, a session or `all` begins anew if the
   * connection is lost before anything was heard on it.
   *
   * Throws CursorPrunedError, CursorAheadError, NotFoundError, InvalidRequestError; UnavailableError or
   * DeadlineExceededError when no server was found for `Timeouts.patienceMs`. A stream that is silent for
   * `Timeouts.silenceMs` is taken up again. Leaving the loop (`break`, `return`, `throw`) cancels the call; to leave while
   * no event comes, abort `signal`.
   */
  subscribe(
    request: MessageInitShape<typeof SubscribeRequestSchema>,
    options: CallOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    return follow(this.#caller, request, options);
  }

  /**
   * How a run ended; how it stands if it has not ended after `timeoutMs`. `hasEnded(answer.state)` tells which.
   *
   * Goes on over the server's limit, over servers that leave, restart or do not answer: with a timeout until
   * `Timeouts.attemptMs` after it, without one until no server was found for `Timeouts.patienceMs`; then it throws
   * UnavailableError or DeadlineExceededError. Throws NotFoundError.
   */
  wait(runId: string, options: WaitOptions = {}): Promise<WaitResponse> {
    return waitForEnd(this.#caller, runId, options);
  }

  /**
   * End a run. After the answer it has no further event, tool call or transcript entry, unless it is in `pendingRunIds`:
   * then it will end soon. A run that has ended is no error; the lists are then empty, also when an earlier attempt ended it
   * whose answer was lost. Repeated as `agent` is. Throws NotFoundError.
   */
  abort(runId: string, { reason = "", ...options }: AbortOptions = {}): Promise<AbortResponse> {
    const request = { target: { case: "runId", value: runId }, reason } as const;
    return this.#caller.repeat(AgentService.method.abort, request, options, ABORT_ANSWER_MS);
  }

  /**
   * End what runs in a session, and with `clearQueued` first what waits there.
   *
   * Waits for a server, but is made once: a repetition could end the run that came next. So UnavailableError and
   * DeadlineExceededError leave open whether it happened. Throws NotFoundError for an unknown session.
   */
  abortSession(
    sessionKey: string,
    { reason = "", clearQueued = false, ...options }: AbortSessionOptions = {},
  ): Promise<AbortResponse> {
    const request = { target: { case: "sessionKey", value: sessionKey }, reason, clearQueued } as const;
    return this.#caller.onlyOnce(AgentService.method.abort, request, options);
  }

  /** A run as it stands. Throws NotFoundError. */
  getRun(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#caller.repeat(AgentService.method.getRun, { runId }, options);
  }

  /** All runs that pass the filters, those accepted last first; read page by page while it is iterated. */
  listRuns(
    filters: Omit<MessageInitShape<typeof ListRunsRequestSchema>, "$typeName" | "$unknown"> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Run, void, undefined> {
    return this.#caller.pages(
      AgentService.method.listRuns,
      (pageToken) => (pageToken ? { ...filters, pageToken } : filters),
      (page) => [page.runs, page.nextPageToken],
      options,
    );
  }

  // --- what the server has ---------------------------------------------------------------------------------------------

  /** What may stand in `agentId`, by name. */
  listAgents(options: CallOptions = {}): AsyncGenerator<Agent, void, undefined> {
    return this.#caller.pages(
      AgentService.method.listAgents,
      (pageToken) => ({ pageToken }),
      (page) => [page.agents, page.nextPageToken],
      options,
    );
  }

  /** What may stand in `model`, by name. */
  listModels(options: CallOptions = {}): AsyncGenerator<Model, void, undefined> {
    return this.#caller.pages(
      AgentService.method.listModels,
      (pageToken) => ({ pageToken }),
      (page) => [page.models, page.nextPageToken],
      options,
    );
  }

  /** What may stand in `toolsAllow` and `toolsDeny`, by name. */
  listTools(options: CallOptions = {}): AsyncGenerator<Tool, void, undefined> {
    return this.#caller.pages(
      AgentService.method.listTools,
      (pageToken) => ({ pageToken }),
      (page) => [page.tools, page.nextPageToken],
      options,
    );
  }

  /** Lanes, runs, sessions, store and version of the server. */
  status(options: CallOptions = {}): Promise<GetStatusResponse> {
    return this.#caller.repeat(AdminService.method.getStatus, {}, options);
  }

  /**
   * What was done in the service, as far as it passes the filters, newest first; read page by page while it is iterated. A
   * record that is missing proves nothing.
   */
  listAuditRecords(
    filters: Omit<MessageInitShape<typeof ListAuditRecordsRequestSchema>, "$typeName" | "$unknown"> = {},
    options: CallOptions = {},
  ): AsyncGenerator<AuditRecord, void, undefined> {
    return this.#caller.pages(
      AdminService.method.listAuditRecords,
      (pageToken) => (pageToken ? { ...filters, pageToken } : filters),
      (page) => [page.records, page.nextPageToken],
      options,
    );
  }

  /** Tell the server to finish and leave; returns at once. Made once: a repetition could meet the next server. */
  async drain(options: DeadlineOptions = {}): Promise<void> {
    await this.#caller.onlyOnce(AdminService.method.drain, {}, options);
  }
}

/** A request of our own, which has a key: the caller's is never changed. */
function withKey(request: AgentInput): MessageInitShape<typeof AgentRequestSchema> {
  const fields = typeof request === "string" ? { message: request } : request;
  return { ...fields, idempotencyKey: fields.idempotencyKey || `client-${randomUUID()}` };
}
