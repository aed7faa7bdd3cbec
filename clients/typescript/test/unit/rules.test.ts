/** The pure rules: what an error says, what is repeated and when, where a subscription stands. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { status } from "@grpc/grpc-js";

import { errorOf, makeError, readDetails } from "../../src/errors.js";
import { ClientClosedError, CursorPrunedError, LanewayError, LimitReachedError } from "../../src/index.js";
import { Position } from "../../src/positions.js";
import { Losses, isLost, pauseAfter } from "../../src/retries.js";
import { detailsOf, end, event, piece, refused } from "./scripted_service.js";

const unavailable = (details = {}): LanewayError => errorOf(refused({ code: status.UNAVAILABLE, ...details }));

test("an error has reason, metadata, field and suggested pause of its details", () => {
  const error = errorOf(
    refused({
      code: status.INVALID_ARGUMENT,
      reason: "FIELD_INVALID",
      metadata: { run_id: "run_1" },
      violatedField: "metadata",
      retryAfterMs: 1_500,
    }),
  );
  assert.equal(error.name, "InvalidRequestError");
  assert.equal(error.message, "refused (FIELD_INVALID)");
  assert.deepEqual({ ...error.metadata }, { run_id: "run_1" });
  assert.deepEqual([error.reason, error.field, error.retryAfterMs], ["FIELD_INVALID", "metadata", 1_500]);
});

test("a pruned cursor says where the log begins", () => {
  const metadata = { earliest_seq: "9007199254740993", latest_seq: "x", earliest_cursor: "c" };
  const error = errorOf(refused({ code: status.OUT_OF_RANGE, reason: "CURSOR_PRUNED", metadata }));
  assert.ok(error instanceof CursorPrunedError);
  assert.deepEqual(
    [error.earliestSeq, error.latestSeq, error.earliestCursor],
    [9007199254740993n, undefined, "c"],
  );
});

test("details that do not parse, or are of somebody else, give no reason", () => {
  assert.equal(readDetails(new Uint8Array([255, 255])).reason, "");
  const foreign = { code: status.UNAVAILABLE, reason: "MESH", domain: "mesh", metadata: { a: "b" } };
  assert.deepEqual({ ...readDetails(detailsOf(foreign)).metadata }, {});
  assert.equal(readDetails(detailsOf(foreign)).reason, "");
});

test("losses are what a later call may get over", () => {
  assert.ok(isLost(unavailable({ reason: "DRAINING" })));
  for (const code of [status.DEADLINE_EXCEEDED, status.CANCELLED, status.UNKNOWN, status.INTERNAL]) {
    assert.ok(isLost(makeError(code, "")), status[code]);
    assert.ok(!isLost(errorOf(refused({ code, reason: "INTERNAL" }))), status[code]);
  }
  assert.ok(!isLost(new ClientClosedError()));
  const limit = errorOf(refused({ code: status.RESOURCE_EXHAUSTED, reason: "QUEUE_FULL", retryAfterMs: 1 }));
  assert.ok(limit instanceof LimitReachedError);
  assert.ok(!isLost(limit));
  assert.ok(!isLost(makeError(status.NOT_FOUND, "")));
});

test("pauses double up to three seconds, are shortened by chance, and are never below the suggestion", () => {
  assert.deepEqual([1, 2, 3, 6, 99].map((number) => pauseAfter(number, 0)), [100, 200, 400, 3_000, 3_000]);
  assert.equal(pauseAfter(2, 1), 100);
  assert.equal(pauseAfter(1, 1, 700), 700);
});

test("patience ends before a try that would come too late, and begins anew after contact", () => {
  const losses = new Losses(() => 1_000, 0);
  assert.equal(losses.pauseFor(unavailable(), 800, 0), 100);
  assert.equal(losses.pauseFor(unavailable(), 800, 0), undefined);
  losses.contact();
  assert.equal(losses.pauseFor(unavailable({ retryAfterMs: 999 }), 5_000, 0), 999);
  assert.equal(losses.pauseFor(unavailable({ retryAfterMs: 1_000 }), 5_000, 0), undefined);
});

test("a run is read on above the last event; repeated and unstored ones are not new", () => {
  const position = new Position({ target: { case: "runId", value: "run_1" }, afterSeq: 0n });
  assert.deepEqual([piece(1), piece(1), piece(2)].map((each) => position.take(each)), [true, false, true]);
  assert.equal(position.take(event({ payload: { case: "progress", value: { cursor: "c9" } } })), false);
  assert.deepEqual([position.request.afterSeq, position.request.cursor], [2n, ""]);
  assert.ok(!position.mayEnd);
  assert.ok(position.take(end(3)));
  assert.ok(position.isAtEnd);
});

test("the first snapshot is given, and then the events are asked for", () => {
  const position = new Position({ target: { case: "runId", value: "run_1" } });
  const snapshot = event({ payload: { case: "snapshot", value: { firstSeq: 5n, lastSeq: 7n } } });
  assert.deepEqual([position.take(snapshot), position.take(snapshot)], [true, false]);
  assert.equal(position.request.afterSeq, 4n);
  assert.ok(position.mayEnd);
});

test("a session is read on by cursors: of events, of signs of life, of a server that leaves", () => {
  const request = { target: { case: "sessionKey", value: "s" } } as const;
  const position = new Position(request);
  assert.ok(position.take(end(4)));
  assert.deepEqual([position.request.cursor, position.isAtEnd, position.mayEnd], ["c4", false, false]);
  position.take(event({ payload: { case: "progress", value: { cursor: "c8" } } }));
  assert.equal(position.request.cursor, "c8");
  position.lose(unavailable({ reason: "STORE_UNAVAILABLE", metadata: { cursor: "no" } }));
  position.lose(unavailable({ reason: "DRAINING", metadata: { cursor: "c9" } }));
  assert.deepEqual([position.request.cursor, position.request.afterSeq], ["c9", undefined]);
  assert.deepEqual(request, { target: { case: "sessionKey", value: "s" } });
});
