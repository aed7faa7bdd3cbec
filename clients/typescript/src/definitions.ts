/** Generated services in the form in which `@grpc/grpc-js` takes them. */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";

/** Names of gRPC on the wire: `/laneway.v1.AgentService/Agent`. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The bytes of a message, or of what a message is made from. */
export function encode<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A decoder for messages of `schema`. */
export function decoder<Desc extends DescMessage>(schema: Desc): (bytes: Buffer) => MessageShape<Desc> {
  return (bytes) => fromBinary(schema, bytes);
}

/**
 * A service for `grpc.Server.addService` and `grpc.makeClientConstructor`: for bare stubs and for tests. It takes messages
 * and what messages are made from.
 */
export function serviceDefinition(service: Pick<DescService, "methods">): grpc.ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

type Method = grpc.MethodDefinition<MessageInitShape<DescMessage>, MessageInitShape<DescMessage>>;

function methodDefinition(method: DescMethod): Method {
  return {
    path: pathOf(method),
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (message) => encode(method.input, message),
    requestDeserialize: decoder(method.input),
    responseSerialize: (message) => encode(method.output, message),
    responseDeserialize: decoder(method.output),
    originalName: method.localName,
  };
}
