"""Server reflection under both of its names, and for methods too."""

from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer

REFLECTION_NAMES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


class _PoolWithMethods:
    """The default descriptor pool, which finds methods as well: `grpcurl describe package.Service.Method` asks so."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:
        """Raises KeyError for an unknown symbol."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service_name, _, method_name = symbol.rpartition(".")
            service = self._pool.FindServiceByName(service_name)
            if method_name not in service.methods_by_name:
                raise
            return service.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def reflection_handlers(service_names: tuple[str, ...]) -> list[grpc.GenericRpcHandler]:
    """Reflection under its name v1alpha, which is all that grpcio-reflection offers, and under v1, which has the same
    messages on the wire and which newer clients ask for first."""
    servicer = ReflectionServicer([*service_names, *REFLECTION_NAMES], pool=_PoolWithMethods())
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return [grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": handler}) for name in REFLECTION_NAMES]
