// Says each argument to an agent, one after the other in one conversation, and shows the answers while they are written.
// Ctrl-C aborts the run.
import { LanewayClient, LanewayError, isTerminal } from "@laneway/client";

const client = new LanewayClient(process.env["LANEWAY_ADDRESS"] ?? "127.0.0.1:50551");
let runId = "";
let aborting: Promise<unknown> | undefined;
process.once("SIGINT", () => {
  if (!runId) process.exit(130);
  aborting = client.abort(runId, { reason: "Ctrl-C" });
});

try {
  for (const message of process.argv.slice(2)) {
    for await (const event of client.run({ message, sessionKey: "chat" })) {
      const { payload } = event;
      switch (payload.case) {
        case "accepted":
          ({ runId } = event);
          // A command in a message, as /queue, is answered without a run.
          console.log(runId ? `run ${runId}` : payload.value.reply);
          break;
        case "assistant":
          process.stdout.write(payload.value.delta);
          break;
        case "tool":
          if (payload.value.argumentsJson) console.log(`\n> ${payload.value.name} ${payload.value.argumentsJson}`);
          break;
        case "lifecycle":
          if (payload.value.voidMessageId) console.log("\n(once more)");
          if (isTerminal(event)) console.log("\nended:", payload.value.error?.reason ?? payload.value.stopReason);
          break;
      }
    }
    await aborting;
    if (aborting) break;
  }
} catch (error) {
  if (!(error instanceof LanewayError)) throw error;
  console.error("failed:", error.message);
  process.exitCode = 1;
} finally {
  client.close();
}
