/**
 * When a call or a stream that failed is tried again, and after how long. Pure: time and chance come in.
 *
 * A call may be repeated when repeating it changes nothing: reads, waits, subscriptions, a message with an idempotency
 * key, the abort of one run. The others (abort of a session, reset, delete, drain) are made once, because between the lost
 * answer and the repetition something else may have taken the place of what they were meant for.
 */

import { status as Status } from "@grpc/grpc-js";

import { ClientClosedError } from "./errors.js";
import type { LanewayError } from "./errors.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;

/** What a connection that is cut in the middle of a frame, or a time limit, ends as - if no service gave a reason. */
const TRANSPORT_STATUSES: ReadonlySet<Status> = new Set([
  Status.DEADLINE_EXCEEDED,
  Status.CANCELLED,
  Status.UNKNOWN,
  Status.INTERNAL,
]);

/**
 * Whether connection, answer or server went away, so that the same call may succeed later.
 *
 * LimitReachedError is none: the service is there and says no, so asking again at once would be one more load on it.
 */
export function isLost(error: LanewayError): boolean {
  if (error instanceof ClientClosedError) {
    return false;
  }
  return error.status === Status.UNAVAILABLE || (TRANSPORT_STATUSES.has(error.status) && !error.reason);
}

/**
 * Milliseconds to pause after loss number `losses` in a row, from 1.
 *
 * 100, 200, 400 ... up to 3000, each made shorter by up to a half (`jitter` 0 to 1), so that callers who lost the same
 * server do not come back at one instant. The server's own suggestion is the least.
 */
export function pauseAfter(losses: number, jitter: number, retryAfterMs = 0): number {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(losses - 1, 10), LONGEST_PAUSE_MS);
  return Math.max(longest * (1 - jitter / 2), retryAfterMs);
}

/** The losses in a row of one call or stream. */
export class Losses {
  count = 0;

  /**
   * `patience`: how long to try, asked for at each loss. `since`: when the time began; undefined for a stream, whose time
   * begins with its loss.
   */
  constructor(
    private readonly patience: () => number,
    private since?: number,
  ) {}

  /** How long to try. */
  get patienceMs(): number {
    return this.patience();
  }

  /** The server was heard: the next loss of a stream begins anew. */
  contact(): void {
    this.since = undefined;
    this.count = 0;
  }

  /**
   * Count a loss; how long to pause before the next try, or undefined to give up: the error is no loss, or the next try
   * would come after `patienceMs`.
   */
  pauseFor(error: LanewayError, now: number, jitter: number): number | undefined {
    if (!isLost(error)) {
      return undefined;
    }
    this.count += 1;
    this.since ??= now;
    const pause = pauseAfter(this.count, jitter, error.retryAfterMs);
    return now + pause - this.since < this.patienceMs ? pause : undefined;
  }
}
