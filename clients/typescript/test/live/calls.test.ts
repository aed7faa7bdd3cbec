/** Every call once against the service at LANEWAY_ADDRESS, whose model `mock/any` answers `ok`. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import {
  AuditAction,
  AuditStatus,
  Disposition,
  InvalidRequestError,
  LanewayClient,
  LanewayError,
  NotAvailableError,
  NotFoundError,
  RunState,
  WaitStatus,
  isTerminal,
} from "@laneway/client";
import type { AgentInput, Event } from "@laneway/client";

const address = process.env["LANEWAY_ADDRESS"];
assert.ok(address, "LANEWAY_ADDRESS names the service");
const client = new LanewayClient(address);
after(() => client.close());

const hello = (fields: Exclude<AgentInput, string> = {}): AgentInput => ({
  message: "hello",
  model: "mock/any",
  ...fields,
});

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function refusal(call: Promise<unknown>): Promise<LanewayError> {
  const error: unknown = await call.then(
    () => assert.fail("the call was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof LanewayError);
  return error;
}

test("a run is read from its acceptance to its end, and again under the same key", async () => {
  const request = hello({ idempotencyKey: "twice" });
  const [accepted, ...events] = await all(client.run(request));
  assert.equal(accepted?.payload.case, "accepted");
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => BigInt(index + 1)));
  assert.deepEqual(events.map(isTerminal), events.map((_, index) => index === events.length - 1));
  const [again, ...replay] = await all(client.run(request));
  assert.ok(again?.payload.case === "accepted" && again.payload.value.duplicate);
  assert.deepEqual(replay, events);
  const waited = await client.wait(again.runId);
  assert.deepEqual([waited.status, waited.payloads[0]?.text], [WaitStatus.OK, "ok"]);
  const run = await client.getRun(again.runId);
  assert.deepEqual([run.state, run.lastSeq], [RunState.SUCCEEDED, BigInt(events.length)]);
});

test("a command in a message is answered without a run, and once", async () => {
  const request = { message: "/queue collect", sessionKey: "commanded", idempotencyKey: "command" };
  const [only, ...more] = await all(client.run(request));
  assert.ok(only?.payload.case === "accepted");
  assert.deepEqual(more, []);
  const { disposition, reply, runId } = only.payload.value;
  assert.deepEqual([disposition, runId], [Disposition.COMPLETED, ""]);
  assert.match(reply, /collect/);
  const again = await client.agent({ ...request });
  assert.deepEqual([again.duplicate, again.reply], [true, reply]);
  assert.deepEqual(await all(client.listRuns({ sessionKey: "commanded" })), []);
});

test("a session is read over its runs", async () => {
  const accepted = [];
  for (let number = 0; number < 3; number++) accepted.push(await client.agent(hello({ sessionKey: "read" })));
  await client.wait(accepted[2]?.runId ?? "");
  let last: Event | undefined;
  for await (last of client.subscribe({ target: { case: "sessionKey", value: "read" } })) {
    if (isTerminal(last) && last.runId === accepted[2]?.runId) break;
  }
  const next = await client.agent(hello({ sessionKey: "read" }));
  const log = client.subscribe({ target: { case: "sessionKey", value: "read" }, cursor: last?.cursor ?? "" });
  assert.equal((await log.next()).value?.runId, next.runId);
  await log.return();
});

test("runs are listed over pages with filters", async () => {
  const accepted = [];
  for (let number = 0; number < 3; number++) accepted.push(await client.agent(hello({ label: "listed" })));
  const listed = await all(client.listRuns({ label: "listed", pageSize: 1 }));
  assert.deepEqual(listed.map(({ runId }) => runId), accepted.map(({ runId }) => runId).toReversed());
});

test("ended runs and idle sessions are aborted without harm", async () => {
  const { runId } = await client.agent(hello({ sessionKey: "abort" }));
  await client.wait(runId);
  assert.deepEqual((await client.abort(runId, { reason: "enough" })).abortedRunIds, []);
  assert.deepEqual((await client.abortSession("abort", { clearQueued: true })).cancelledRunIds, []);
});

test("sessions and their entries are read and changed", async () => {
  const { runId } = await client.agent(hello({ sessionKey: "kept" }));
  await client.wait(runId);
  const session = await client.sessions.get("kept");
  assert.ok((await all(client.sessions.list())).some(({ sessionKey }) => sessionKey === session.sessionKey));
  const entries = await all(client.sessions.entries("kept"));
  assert.deepEqual(entries.map(({ body }) => body.case), ["user", "assistant"]);
  assert.equal(await client.sessions.readEntry("kept", entries[1]?.entryId ?? ""), "ok");
  const lines = await all(client.sessions.export("kept"));
  const types = lines.map((line) => (JSON.parse(line) as { type: string }).type);
  assert.deepEqual(types, ["session", "message", "message", "custom"]);
  const updated = await client.sessions.update("kept", { label: "mine", pinned: true, trace: false });
  assert.deepEqual([updated.label, updated.pinned, updated.trace], ["mine", true, false]);
  const cleared = await client.sessions.update("kept", { label: null, trace: null });
  assert.deepEqual([cleared.label, cleared.pinned, cleared.trace], ["", true, undefined]);
  assert.equal((await all(client.sessions.list({ pinned: true, archived: false }))).length, 1);
  assert.deepEqual(await all(client.sessions.list({ archived: true })), []);
  const forked = await client.sessions.fork("kept", "forked", { entryId: entries[0]?.entryId, label: "what if" });
  assert.deepEqual([forked.entries, forked.session?.parentSessionKey], [1, "agent:main:kept"]);
  assert.ok((await client.sessions.fork("kept", "forked")).duplicate);
  await client.sessions.reset("kept");
  assert.equal((await all(client.sessions.entries("kept"))).at(-1)?.body.case, "reset");
  await client.sessions.delete("kept", { force: true });
  assert.equal((await refusal(client.sessions.get("kept"))).reason, "SESSION_NOT_FOUND");
});

test("what the server has is listed", async () => {
  assert.deepEqual((await all(client.listAgents())).map(({ agentId }) => agentId), ["main"]);
  assert.ok((await all(client.listTools())).some(({ name }) => name === "exec"));
  await all(client.listModels());
  assert.ok((await client.status()).version);
});

test("what was done is listed, page by page and as far as it passes the filters", async () => {
  const { runId } = await client.agent(hello());
  await client.wait(runId);
  const actions = async (filters: Parameters<typeof client.listAuditRecords>[0]): Promise<AuditAction[]> =>
    (await all(client.listAuditRecords(filters))).map(({ action }) => action);
  assert.deepEqual(await actions({ runId, pageSize: 1 }), [AuditAction.RUN_FINISHED, AuditAction.RUN_STARTED]);
  assert.deepEqual(await actions({ runId, status: AuditStatus.SUCCEEDED }), [AuditAction.RUN_FINISHED]);
});

test("refusals have the reason of the contract and what goes with it", async () => {
  const empty = await refusal(client.agent(""));
  assert.ok(empty instanceof InvalidRequestError);
  assert.equal(empty.reason, "MESSAGE_EMPTY");
  const metadata = Object.fromEntries(Array.from({ length: 33 }, (_, number) => [String(number), ""]));
  const many = await refusal(client.agent(hello({ metadata })));
  assert.deepEqual([many.reason, many.field, many.metadata["field"]], ["FIELD_INVALID", "metadata", "metadata"]);
  const later = await refusal(client.agent(hello({ deliver: true })));
  assert.ok(later instanceof NotAvailableError);
  assert.deepEqual([later.reason, later.field], ["NOT_AVAILABLE_YET", "deliver"]);
  await client.agent(hello({ idempotencyKey: "taken" }));
  const reused = await refusal(client.agent(hello({ idempotencyKey: "taken", label: "other" })));
  assert.equal(reused.reason, "IDEMPOTENCY_KEY_REUSED");
  const unknown = await refusal(client.wait("run_nothing"));
  assert.ok(unknown instanceof NotFoundError);
  assert.equal(unknown.reason, "RUN_NOT_FOUND");
});

test("a cursor error says where the log is", async () => {
  const { runId } = await client.agent(hello());
  await client.wait(runId);
  const { lastSeq } = await client.getRun(runId);
  const ahead = await refusal(all(client.subscribe({ target: { case: "runId", value: runId }, afterSeq: 99n })));
  assert.equal(ahead.name, "CursorAheadError");
  assert.deepEqual({ ...ahead.metadata }, { ...ahead.metadata, earliest_seq: "1", latest_seq: String(lastSeq) });
});
