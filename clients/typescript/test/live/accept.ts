/**
 * Hands over one message and waits for the end of its run: a line of JSON for each loss, for the acceptance and for the end.
 * Arguments: the message, the time for one attempt in ms.
 */

import { LanewayClient, RunState } from "../../src/index.js";

const [message = "", attemptMs = "10000"] = process.argv.slice(2);
const client = new LanewayClient(process.env["LANEWAY_ADDRESS"] ?? "", {
  timeouts: { attemptMs: Number(attemptMs) },
  onLoss: ({ error, pauseMs }) =>
    console.log(JSON.stringify({ loss: error.reason || error.name, retryAfterMs: error.retryAfterMs, pauseMs })),
});

try {
  const { runId, duplicate } = await client.agent({ message, model: "mock/any" });
  console.log(JSON.stringify({ accepted: runId, duplicate }));
  const { state, payloads } = await client.wait(runId);
  console.log(JSON.stringify({ state: RunState[state], text: payloads[0]?.text }));
} finally {
  client.close();
}
