/** The calls about sessions and their transcripts; `LanewayClient.sessions` is one of these. */

import type { CallOptions, Caller, DeadlineOptions } from "./calls.js";
import type { QueueMode, ThinkingLevel, Verbosity } from "./gen/laneway/v1/agent_pb.js";
import { SessionService } from "./gen/laneway/v1/session_pb.js";
import type {
  DeleteSessionResponse,
  Entry,
  ForkSessionResponse,
  ReasoningVisibility,
  ResetSessionResponse,
  Session,
} from "./gen/laneway/v1/session_pb.js";

/** What `reset` and `delete` take. */
export interface EndSessionOptions extends DeadlineOptions {
  /** Abort what runs or waits in the session; else that is PreconditionFailedError (SESSION_ACTIVE). */
  readonly force?: boolean | undefined;
}

/** What `update` takes: what is absent is left, null clears. Unspecified values of enums clear too. */
export interface SessionUpdate {
  /** As `provider/model`. */
  readonly model?: string | null;
  readonly thinking?: ThinkingLevel | null;
  readonly verbose?: Verbosity | null;
  readonly reasoning?: ReasoningVisibility | null;
  readonly trace?: boolean | null;
  readonly queueMode?: QueueMode | null;
  readonly label?: string | null;
  readonly pinned?: boolean | null;
  readonly archived?: boolean | null;
}

/** What `list` takes. Absent shows both. */
export interface ListSessionsOptions extends CallOptions {
  /** Only archived sessions, or only those that are not. */
  readonly archived?: boolean | undefined;
  /** Only pinned sessions, or only those that are not. */
  readonly pinned?: boolean | undefined;
}

/** What `fork` takes. */
export interface ForkSessionOptions extends CallOptions {
  /** The last entry that is copied; absent means the newest. */
  readonly entryId?: string | undefined;
  /** A name for people, of the new session. */
  readonly label?: string | undefined;
}

/** Reads, `update` and `fork` are repeated as LanewayClient repeats its own; what ends something is made once. */
export class SessionCalls {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** A session as it stands. Throws NotFoundError. */
  get(sessionKey: string, options: CallOptions = {}): Promise<Session> {
    return this.#caller.repeat(SessionService.method.getSession, { sessionKey }, options);
  }

  /** All sessions, those with the newest message first; read page by page while it is iterated. */
  list({ archived, pinned, ...options }: ListSessionsOptions = {}): AsyncGenerator<Session, void, undefined> {
    const which = { ...(archived === undefined ? {} : { archived }), ...(pinned === undefined ? {} : { pinned }) };
    return this.#caller.pages(
      SessionService.method.listSessions,
      (pageToken) => ({ ...which, pageToken }),
      (page) => [page.sessions, page.nextPageToken],
      options,
    );
  }

  /**
   * Set what is given; the session as it then stands. Counts for the messages accepted from then on. Throws
   * NotFoundError, InvalidRequestError (`field` says which), PreconditionFailedError. Repeated like a read: the second
   * time it sets the same again.
   */
  update(sessionKey: string, fields: SessionUpdate, options: CallOptions = {}): Promise<Session> {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const values = Object.fromEntries(given.filter(([, value]) => value !== null));
    const session = { ...values, sessionKey };
    const updateMask = { paths: given.map(([name]) => name) };
    return this.#caller.repeat(SessionService.method.updateSession, { session, updateMask }, options);
  }

  /**
   * Begin a fresh conversation under the same key. Throws NotFoundError, PreconditionFailedError. UnavailableError and
   * DeadlineExceededError leave open whether it happened; it is not repeated, because a repetition would abort what came
   * after the first.
   */
  reset(sessionKey: string, { force = false, ...options }: EndSessionOptions = {}): Promise<ResetSessionResponse> {
    return this.#caller.onlyOnce(SessionService.method.resetSession, { sessionKey, force }, options);
  }

  /** Remove a session with all that is stored of it. `force`, errors and repetition as for `reset`. */
  delete(sessionKey: string, { force = false, ...options }: EndSessionOptions = {}): Promise<DeleteSessionResponse> {
    return this.#caller.onlyOnce(SessionService.method.deleteSession, { sessionKey, force }, options);
  }

  /**
   * Make a new session that goes on from an entry of this one. Throws NotFoundError, InvalidRequestError (`newSessionKey`
   * when another session has it). Repeated like a read: the second time it answers what the first has made, with
   * `duplicate`.
   */
  fork(
    sessionKey: string,
    newSessionKey: string,
    { entryId = "", label = "", ...options }: ForkSessionOptions = {},
  ): Promise<ForkSessionResponse> {
    const request = { sessionKey, newSessionKey, entryId, label };
    return this.#caller.repeat(SessionService.method.forkSession, request, options);
  }

  /** The transcript, oldest first; long texts are cut (`truncated`) and read whole by `readEntry`. NotFoundError. */
  entries(sessionKey: string, options: CallOptions = {}): AsyncGenerator<Entry, void, undefined> {
    return this.#caller.pages(
      SessionService.method.listEntries,
      (pageToken) => ({ sessionKey, pageToken }),
      (page) => [page.entries, page.nextPageToken],
      options,
    );
  }

  /** The whole text of piece `part`, from 0, of an entry's content. Throws NotFoundError, InvalidRequestError. */
  async readEntry(sessionKey: string, entryId: string, part = 0, options: CallOptions = {}): Promise<string> {
    const pieces: string[] = [];
    let offset = 0n;
    for (;;) {
      const request = { sessionKey, entryId, part, offset };
      const answer = await this.#caller.repeat(SessionService.method.readEntry, request, options);
      pieces.push(answer.text);
      offset = answer.nextOffset;
      if (offset >= answer.totalBytes || !answer.text) {
        return pieces.join("");
      }
    }
  }

  /**
   * The transcript as JSON lines without line ends: first a header, then the entries, last the end, without which it is
   * not imported again. Throws NotFoundError. It cannot be taken up again: UnavailableError or DeadlineExceededError in its
   * middle means to begin anew.
   */
  async *export(sessionKey: string, { signal }: CallOptions = {}): AsyncGenerator<string, void, undefined> {
    const { silenceMs } = this.#caller.timeouts;
    const options = { silenceMs, signal, waitsForServer: true };
    if (!this.#caller.hasHeard) {
      await this.#caller.found({ signal });
    }
    const stream = this.#caller.stream(SessionService.method.exportSession, { sessionKey }, options);
    let pieces: string[] = [];
    try {
      for (let answer = await stream.next(); answer; answer = await stream.next()) {
        this.#caller.heard();
        pieces.push(answer.line);
        if (!answer.lineContinues) {
          yield pieces.join("");
          pieces = [];
        }
      }
    } finally {
      stream.close();
    }
  }
}
