"""Errors: a gRPC status with google.rpc.ErrorInfo (SYS-3)."""

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

DETAILS_KEY = "grpc-status-details-bin"
Code = grpc.StatusCode


class GatewayError(Exception):
    """An error response: one sentence and a stable reason."""

    def __init__(self, code: grpc.StatusCode, reason: str, message: str, **metadata: str) -> None:
        """`metadata` has the field, limit or id; never content."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.metadata = metadata

    def details(self) -> bytes:
        """Returns the serialized google.rpc.Status with the ErrorInfo."""
        info = ErrorInfo(domain="writ", reason=self.reason, metadata=self.metadata)
        packed = Any()
        packed.Pack(info)
        code: int = self.code.value[0]
        return Status(code=code, message=self.message, details=[packed]).SerializeToString()


def invalid(reason: str, message: str, field: str) -> GatewayError:
    """Returns INVALID_ARGUMENT: the request is invalid regardless of the state of the gateway."""
    return GatewayError(Code.INVALID_ARGUMENT, reason, message, field=field)


def denied(reason: str, message: str, **metadata: str) -> GatewayError:
    """Returns PERMISSION_DENIED: the caller may not make this call."""
    return GatewayError(Code.PERMISSION_DENIED, reason, message, **metadata)


def unauthenticated(reason: str, message: str, **metadata: str) -> GatewayError:
    """Returns UNAUTHENTICATED: the caller is not authenticated."""
    return GatewayError(Code.UNAUTHENTICATED, reason, message, **metadata)
