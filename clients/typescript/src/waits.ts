/** Waits for the end of a run over servers that limit waits, leave, restart or stand still. */

import { durationFromMs } from "@bufbuild/protobuf/wkt";

import type { CallOptions, Caller } from "./calls.js";
import { AgentService, TimeoutKind } from "./gen/laneway/v1/agent_pb.js";
import type { WaitResponse } from "./gen/laneway/v1/agent_pb.js";
import { RunState } from "./gen/laneway/v1/run_pb.js";
import { Losses } from "./retries.js";

/** What `wait` takes. */
export interface WaitOptions extends CallOptions {
  /** How long to wait; 0 = look only, without it until the run has ended. */
  readonly timeoutMs?: number | undefined;
}

/** gRPC rounds deadlines, and a server that sees one nearer than the wait answers early. */
const DEADLINE_SHARE = 1.02;

/** Whether `state` is one that a run never leaves. */
export function hasEnded(state: RunState): boolean {
  return (
    state === RunState.SUCCEEDED ||
    state === RunState.FAILED ||
    state === RunState.CANCELLED ||
    state === RunState.TIMED_OUT
  );
}

/** What LanewayClient.wait promises. */
export async function waitForEnd(
  caller: Caller,
  runId: string,
  { timeoutMs, signal }: WaitOptions,
): Promise<WaitResponse> {
  const { attemptMs, oneWaitMs } = caller.timeouts;
  const began = caller.now();
  // With a timeout all time counts, without one only that in which no server was found.
  const losses = timeoutMs === undefined ? caller.losses() : new Losses(() => timeoutMs + attemptMs, began);
  let leaving = 0;
  for (;;) {
    const leftMs = timeoutMs === undefined ? oneWaitMs : Math.max(0, began + timeoutMs - caller.now());
    const partMs = Math.floor(Math.min(leftMs, oneWaitMs));
    let limitMs = partMs * DEADLINE_SHARE + attemptMs;
    if (timeoutMs !== undefined) {
      limitMs = Math.min(limitMs, began + losses.patienceMs - caller.now());
    }
    let answer: WaitResponse;
    try {
      if (timeoutMs === undefined && !caller.hasHeard) {
        await caller.connected({ signal });
      }
      const request = { runId, timeout: durationFromMs(partMs) };
      answer = await caller.once(AgentService.method.wait, request, { limitMs, signal });
    } catch (error) {
      await caller.pause(losses, error, signal);
      continue;
    }
    if (hasEnded(answer.state) || (timeoutMs !== undefined && caller.now() - began >= timeoutMs)) {
      return answer;
    }
    if (timeoutMs === undefined) {
      losses.contact();
    }
    if (answer.timeoutKind === TimeoutKind.DRAINING) {
      leaving += 1;
      await caller.rest(leaving, leftMs, signal);
    }
  }
}
