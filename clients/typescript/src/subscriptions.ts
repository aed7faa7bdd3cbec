/** Reads a log over any number of connections: each event once and in order. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { status as Status } from "@grpc/grpc-js";

import type { CallOptions, Caller } from "./calls.js";
import { LanewayError, makeError } from "./errors.js";
import { AgentService } from "./gen/laneway/v1/agent_pb.js";
import type { SubscribeRequestSchema } from "./gen/laneway/v1/agent_pb.js";
import type { Event } from "./gen/laneway/v1/event_pb.js";
import { Position } from "./positions.js";

/** A quiet stream that stood so long before its connection broke had reached a server. */
const CONTACT_MS = 10_000;

/** What LanewayClient.subscribe promises. */
export async function* follow(
  caller: Caller,
  request: MessageInitShape<typeof SubscribeRequestSchema>,
  { signal }: CallOptions,
): AsyncGenerator<Event, void, undefined> {
  const position = new Position(request);
  const losses = caller.losses();
  // A filter may let nothing through for long while the run is busy; then only keepalive tells a lost server, and that
  // needs a connection.
  const isQuiet = position.request.streams.length > 0;
  const silenceMs = isQuiet ? undefined : caller.timeouts.silenceMs;
  for (;;) {
    const began = caller.now();
    let failure: unknown;
    try {
      if (isQuiet || !caller.hasHeard) {
        await caller.connected({ signal });
      }
      const stream = caller.stream(AgentService.method.subscribe, position.request, { silenceMs, signal });
      try {
        for (let event = await stream.next(); event; event = await stream.next()) {
          caller.heard();
          losses.contact();
          if (position.take(event)) {
            yield event;
          }
          if (position.isAtEnd) {
            return;
          }
        }
      } finally {
        stream.close();
      }
      if (position.mayEnd) {
        return;
      }
      failure = makeError(Status.UNAVAILABLE, "the stream ended before the run");
    } catch (error) {
      failure = error;
    }
    if (failure instanceof LanewayError) {
      position.lose(failure);
      if (failure.status === Status.UNAVAILABLE && caller.now() - began >= CONTACT_MS) {
        losses.contact();
      }
    }
    await caller.pause(losses, failure, signal);
  }
}
