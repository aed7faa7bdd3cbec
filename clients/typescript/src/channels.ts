/** How channels to a server are opened: with the settings that docs/clients.md recommends for all languages. */

import * as grpc from "@grpc/grpc-js";

export const CHANNEL_OPTIONS: Readonly<grpc.ChannelOptions> = Object.freeze({
  // A server, or a way to it, that is gone without a word is noticed after 40 s, also while nothing is asked.
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
});

const LOCAL = ["unix:", "unix-abstract:", "127.", "localhost:", "[::1]:"];

/**
 * A gRPC client for `target` in gRPC's spelling: `host:port`, `unix:/path`, `dns:///name:port`.
 *
 * Without credentials it is not encrypted. `options` win over those of this module. A proxy that the environment names is
 * not used for this machine's own addresses.
 */
export function openChannel(
  target: string,
  credentials: grpc.ChannelCredentials | undefined,
  options: grpc.ChannelOptions,
): grpc.Client {
  const isLocal = LOCAL.some((prefix) => target.startsWith(prefix));
  return new grpc.Client(target, credentials ?? grpc.credentials.createInsecure(), {
    ...CHANNEL_OPTIONS,
    ...(isLocal ? { "grpc.enable_http_proxy": 0 } : {}),
    ...options,
  });
}
