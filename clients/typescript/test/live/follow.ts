/**
 * Reads a run, its session and everything at once, in one process, over whatever happens to the server: a line of JSON for
 * each event, until all three have told the end of the run. Arguments: run id, session key, a cursor to begin `all` with.
 */

import { LanewayClient, isTerminal } from "../../src/index.js";
import type { SubscribeRequest } from "../../src/index.js";

const [runId = "", sessionKey = "", cursor = ""] = process.argv.slice(2);
const client = new LanewayClient(process.env["LANEWAY_ADDRESS"] ?? "", {
  onLoss: ({ error }) => console.log(JSON.stringify({ loss: error.reason || error.name })),
});

async function follow(name: string, target: SubscribeRequest["target"], from: object): Promise<void> {
  for await (const event of client.subscribe({ target, ...from })) {
    if (event.runId === runId) {
      console.log(JSON.stringify({ name, seq: Number(event.seq), kind: event.payload.case }));
      if (isTerminal(event)) break;
    }
  }
}

try {
  await Promise.all([
    follow("run", { case: "runId", value: runId }, { afterSeq: 0n }),
    follow("session", { case: "sessionKey", value: sessionKey }, { cursor }),
    follow("all", { case: "all", value: true }, { cursor }),
  ]);
} finally {
  client.close();
}
