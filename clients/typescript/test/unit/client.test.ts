/** The client against a service that fails as the script says. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import * as grpc from "@grpc/grpc-js";

import {
  AgentService,
  CHANNEL_OPTIONS,
  ClientClosedError,
  DeadlineExceededError,
  LanewayClient,
  RunState,
  StreamKind,
  TimeoutKind,
  UnavailableError,
  serviceDefinition,
} from "../../src/index.js";
import type { ClientOptions, Event, LanewayError, Loss } from "../../src/index.js";
import { ScriptedService, end, event, piece, refused } from "./scripted_service.js";

const LOG = { target: { case: "runId", value: "run_1" }, afterSeq: 0n } as const;
const SESSION = { target: { case: "sessionKey", value: "s" } } as const;
const LOST = refused({ code: grpc.status.UNAVAILABLE });
const ACCEPTED = { runId: "run_1", sessionKey: "agent:main:s", agentId: "main" };

let service: ScriptedService;
let client: LanewayClient;
let losses: Loss[];

function connect(options: ClientOptions = {}): LanewayClient {
  client.close();
  client = new LanewayClient(service.target, { onLoss: (loss) => void losses.push(loss), ...options });
  return client;
}

async function seqs(events: AsyncIterable<Event>): Promise<bigint[]> {
  const found: bigint[] = [];
  for await (const { seq } of events) found.push(seq);
  return found;
}

/** Of a call that must fail. */
async function failure(call: Promise<unknown>): Promise<LanewayError> {
  try {
    await call;
  } catch (error) {
    return error as LanewayError;
  }
  throw new assert.AssertionError({ message: "the call did not fail" });
}

beforeEach(async () => {
  service = new ScriptedService();
  losses = [];
  await service.start();
  client = new LanewayClient(service.target);
  connect();
});

afterEach(() => {
  client.close();
  service.stop();
});

test("a message is repeated with one key and as late as the server says", async () => {
  const draining = refused({ code: grpc.status.UNAVAILABLE, reason: "DRAINING", retryAfterMs: 350 });
  service.agentAnswers = [draining, LOST, ACCEPTED];
  const request = { message: "hello", metadata: { b: "2", a: "1" } };
  assert.equal((await client.agent(request)).runId, "run_1");
  assert.deepEqual(losses.map(({ error, number }) => [error.reason, number]), [["DRAINING", 1], ["", 2]]);
  assert.equal(losses[0]?.pauseMs, 350);
  const [first, ...others] = service.agents;
  assert.match(first?.idempotencyKey ?? "", /^client-[0-9a-f-]{36}$/);
  assert.deepEqual(others, [first, first]);
  assert.ok(!("idempotencyKey" in request));
});

test("a message without an answer is repeated; a key of the caller's is kept", async () => {
  service.agentAnswers = ["silence", ACCEPTED];
  connect({ timeouts: { attemptMs: 200 } });
  await client.agent({ message: "hello", idempotencyKey: "mine" });
  assert.deepEqual(service.agents.map(({ idempotencyKey }) => idempotencyKey), ["mine", "mine"]);
  assert.equal(losses[0]?.error.status, grpc.status.DEADLINE_EXCEEDED);
});

test("a refusal is not repeated", async () => {
  service.agentAnswers = [refused({ code: grpc.status.RESOURCE_EXHAUSTED, reason: "QUEUE_FULL", retryAfterMs: 1 })];
  const error = await failure(client.agent("hello"));
  assert.deepEqual([error.name, error.reason, error.attempts], ["LimitReachedError", "QUEUE_FULL", 1]);
  assert.equal(service.agents.length, 1);
});

test("patience ends: the error says how often it was tried", async () => {
  service.agentAnswers = [LOST];
  const error = await failure(client.agent("hello", { deadlineMs: 250 }));
  // The last attempt may have had too little time left for its answer.
  assert.match(error.name, /^(Unavailable|DeadlineExceeded)Error$/);
  assert.ok(error.attempts >= 2);
  assert.ok([0, 1].includes(error.attempts - service.agents.length));
});

test("without a server a call ends soon and says what to do, and a deadline of its own is kept", async () => {
  service.stop();
  const target = "unix:/nonexistent/laneway.sock";
  client.close();
  client = new LanewayClient(target, { timeouts: { connectMs: 150 } });
  const calls: (() => Promise<unknown>)[] = [
    () => client.agent("hello"),
    () => client.drain(),
    () => client.wait("run_1"),
    () => client.sessions.export("s").next(),
    () => seqs(client.subscribe(LOG)),
    () => seqs(client.subscribe({ ...SESSION, streams: [StreamKind.MESSAGE] })),
  ];
  for (const call of calls) {
    const error = await failure(call());
    assert.ok(error instanceof UnavailableError || error instanceof DeadlineExceededError);
    assert.ok(error.message.startsWith(`no server has answered at ${target} within 0.15 s: start one with`), error.message);
  }
  const patient = await failure(client.agent("hello", { deadlineMs: 400 }));
  assert.match(patient.message, / within 0\.4 s: /);
});

test("a server that has answered is looked for as long as patience says", async () => {
  service.agentAnswers = [ACCEPTED, LOST, LOST, LOST, LOST, ACCEPTED];
  connect({ timeouts: { connectMs: 500 } });
  await client.agent("hello");
  const began = performance.now();
  await client.agent("again");
  assert.equal(losses.length, 4);
  assert.ok(performance.now() - began > 500);
});

test("metadata goes with each call, asked for anew", async () => {
  service.agentAnswers = [LOST, ACCEPTED];
  let calls = 0;
  connect({ metadata: () => ({ "x-call": String(++calls) }) });
  await client.agent("hello");
  assert.deepEqual(service.metadata.map((each) => each.get("x-call")), [["1"], ["2"]]);
});

test("a run is read over lost, cut short and repeating streams, each event once, and every call is cancelled", async () => {
  service.readings = [
    { events: [piece(1), piece(2)], ending: LOST },
    { events: [piece(2), piece(3)] },
    { events: [piece(4), end(5)], ending: "silence" },
  ];
  service.agentAnswers = [ACCEPTED];
  assert.deepEqual(await seqs(client.run("hello")), [0n, 1n, 2n, 3n, 4n, 5n]);
  assert.deepEqual(service.subscriptions.map(({ afterSeq }) => afterSeq), [0n, 2n, 3n]);
  await service.cancellations(1);
  assert.deepEqual(service.cancelled, [3]);
});

test("a session is read on by its cursor", async () => {
  const progress = event({ payload: { case: "progress", value: { cursor: "c7" } } });
  const draining = { code: grpc.status.UNAVAILABLE, reason: "DRAINING", metadata: { cursor: "c8" } };
  service.readings = [
    { events: [piece(1)], ending: LOST },
    { events: [progress], ending: LOST },
    { ending: refused(draining) },
    { events: [end(9)], ending: "silence" },
  ];
  const found: bigint[] = [];
  for await (const { seq } of client.subscribe(SESSION)) {
    found.push(seq);
    if (seq === 9n) break;
  }
  assert.deepEqual(found, [1n, 9n]);
  assert.deepEqual(service.subscriptions.map(({ cursor }) => cursor), ["", "c1", "c7", "c8"]);
  await service.cancellations(1);
});

test("a stream that stands still is taken up again", async () => {
  service.readings = [{ events: [piece(1)], ending: "silence" }, { events: [end(2)] }];
  connect({ timeouts: { silenceMs: 150 } });
  assert.deepEqual(await seqs(client.subscribe(LOG)), [1n, 2n]);
  assert.match(losses[0]?.error.message ?? "", /nothing was heard on the stream for 0\.15 s/);
  await service.cancellations(1);
});

test("a filtered stream may stand still", async () => {
  service.readings = [{ events: [piece(1)], ending: "silence" }];
  connect({ timeouts: { silenceMs: 50 } });
  const leaving = new AbortController();
  const reading = seqs(client.subscribe({ ...LOG, streams: [StreamKind.TOOL] }, { signal: leaving.signal }));
  assert.equal(await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 200, "still"))]), "still");
  leaving.abort();
  await assert.rejects(reading, { name: "AbortError" });
  assert.deepEqual(losses, []);
});

test("a filtered stream without a server gives up", async () => {
  connect({ timeouts: { attemptMs: 100, patienceMs: 300 } });
  service.stop();
  const error = await failure(seqs(client.subscribe({ ...LOG, streams: [StreamKind.TOOL] })));
  assert.equal(error.name, "UnavailableError");
});

test("the end of the log without events ends the reading; a refusal ends it too", async () => {
  service.readings = [{}, { ending: refused({ code: grpc.status.OUT_OF_RANGE, reason: "CURSOR_AHEAD" }) }];
  assert.deepEqual(await seqs(client.subscribe(LOG)), []);
  assert.equal((await failure(seqs(client.subscribe(LOG)))).name, "CursorAheadError");
  assert.deepEqual(losses, []);
});

test("leaving a loop early cancels its call", async () => {
  service.readings = [{ events: [piece(1)], ending: "silence" }];
  for await (const { seq } of client.subscribe(LOG)) {
    assert.equal(seq, 1n);
    break;
  }
  await service.cancellations(1);
});

test("a signal ends a reading in which nothing comes, a pause, and a call without an answer", async () => {
  service.readings = [{ events: [piece(1)], ending: "silence" }];
  service.agentAnswers = ["silence", refused({ code: grpc.status.UNAVAILABLE, retryAfterMs: 9_000 })];
  const leaving = new AbortController();
  const { signal } = leaving;
  const pausing = new Promise<void>((resolve) => connect({ onLoss: () => resolve() }));
  const ends = [
    assert.rejects(seqs(client.subscribe(LOG, { signal })), { name: "AbortError" }),
    assert.rejects(client.agent("without an answer", { signal }), { name: "AbortError" }),
    assert.rejects(client.agent("with a pause", { signal }), { name: "AbortError" }),
  ];
  await pausing;
  leaving.abort();
  await Promise.all(ends);
  await service.cancellations(1);
  await assert.rejects(client.agent("too late", { signal }), { name: "AbortError" });
});

test("a client that is closed ends what it does, and does no more", async () => {
  service.readings = [{ events: [piece(1)], ending: "silence" }];
  service.waitAnswers = ["silence"];
  const reading = client.subscribe(LOG);
  await reading.next();
  const ends = [assert.rejects(reading.next(), ClientClosedError), assert.rejects(client.wait("run_1"), ClientClosedError)];
  client.close();
  client.close();
  await Promise.all(ends);
  await assert.rejects(client.agent("hello"), ClientClosedError);
  await assert.rejects(seqs(client.subscribe(LOG)), ClientClosedError);
});

test("an observer that throws ends the call", async () => {
  service.agentAnswers = [LOST];
  connect({
    onLoss: () => {
      throw new RangeError("enough");
    },
  });
  await assert.rejects(client.agent("hello"), RangeError);
});

test("a wait goes on over limits, drains and losses", async () => {
  const open = { runId: "run_1", state: RunState.RUNNING };
  service.waitAnswers = [
    { ...open, timeoutKind: TimeoutKind.WAIT_EXPIRED },
    { ...open, timeoutKind: TimeoutKind.DRAINING },
    LOST,
    { runId: "run_1", state: RunState.SUCCEEDED },
  ];
  connect({ timeouts: { oneWaitMs: 1_500 } });
  assert.equal((await client.wait("run_1")).state, RunState.SUCCEEDED);
  assert.deepEqual(service.waits.map(({ timeout }) => timeout), Array(4).fill(service.waits[0]?.timeout));
  assert.deepEqual([service.waits[0]?.timeout?.seconds, service.waits[0]?.timeout?.nanos], [1n, 500_000_000]);
});

test("a look is one call without a wait", async () => {
  service.waitAnswers = [{ runId: "run_1", state: RunState.RUNNING, timeoutKind: TimeoutKind.WAIT_EXPIRED }];
  assert.equal((await client.wait("run_1", { timeoutMs: 0 })).state, RunState.RUNNING);
  assert.deepEqual(service.waits.map(({ timeout }) => [timeout?.seconds, timeout?.nanos]), [[0n, 0]]);
});

test("a bare stub takes the recommended service config", async () => {
  service.waitAnswers = [LOST, LOST, { runId: "run_1" }];
  const AgentStub = grpc.makeClientConstructor(serviceDefinition(AgentService), "AgentService");
  const file = new URL("../../../../service_config.json", import.meta.url);
  const stub = new AgentStub(service.target, grpc.credentials.createInsecure(), {
    ...CHANNEL_OPTIONS,
    "grpc.service_config": readFileSync(file, "utf8"),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      stub["wait"]?.({ runId: "run_1" }, (error: Error | null) =>
        error ? reject(error) : resolve(),
      );
    });
  } finally {
    stub.close();
  }
  assert.equal(service.waits.length, 3);
});

test("a connection is encrypted and its server known", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "laneway-tls-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  try {
    execFileSync(
      "openssl",
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"].concat(
        ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
      ),
      { stdio: "pipe" },
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    context.skip("openssl, which makes the certificate, is not installed");
    return;
  }
  const ca = readFileSync(certificate);
  const secure = new ScriptedService();
  secure.agentAnswers = [ACCEPTED];
  const pair = { private_key: readFileSync(key), cert_chain: ca };
  const port = await secure.start(grpc.ServerCredentials.createSsl(null, [pair]), "127.0.0.1:0");
  const knowing = new LanewayClient(`localhost:${port}`, { credentials: grpc.credentials.createSsl(ca) });
  const stranger = new LanewayClient(`localhost:${port}`, { credentials: grpc.credentials.createSsl() });
  context.after(() => {
    knowing.close();
    stranger.close();
    secure.stop();
  });
  assert.equal((await knowing.agent("hello")).runId, "run_1");
  assert.equal((await failure(stranger.agent("hello", { deadlineMs: 100 }))).name, "UnavailableError");
});
