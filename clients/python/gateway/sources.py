"""Tool providers: servers of ToolProviderService, and their slots (TG-6)."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc
from writ.tool.v1 import tool_pb2 as tool_pb
from writ.tool.v1 import tool_provider_service_pb2 as provider_pb
from writ.tool.v1.tool_provider_service_pb2_grpc import ToolProviderServiceStub

from .errors import Code, GatewayError
from .registry import Source
from .strict_json import BadJsonError, Json, parse_strict
from .tokens import SigningKey

MAX_RESULT_BYTES = 4 * 1024 * 1024
MAX_MESSAGE = 1_000
#: Statuses that a server returns before it runs a tool.
REFUSALS = {
    Code.INVALID_ARGUMENT,
    Code.UNAUTHENTICATED,
    Code.PERMISSION_DENIED,
    Code.NOT_FOUND,
    Code.FAILED_PRECONDITION,
    Code.UNIMPLEMENTED,
}


@dataclass(frozen=True)
class Answer:
    """Result of one execution of a tool: `ok`, `error`, or `lost` if the outcome is unknown."""

    ending: str
    message: str = ""
    stop_reason: str = ""
    result: tool_pb.ToolResult | None = None
    value: Json = None


class OpenSource:
    """A provider. A call acquires a slot of its provider before its intent is recorded (SUP-8)."""

    def __init__(self, source: Source, key: SigningKey) -> None:
        """Creates the channel, which connects on the first call."""
        self._source = source
        self._key = key
        self._channel = grpc.aio.insecure_channel(source.address)
        self._stub = ToolProviderServiceStub(self._channel)
        self._slots = asyncio.Semaphore(source.max_in_flight)
        self._queued = 0

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def acquire(self) -> None:
        """Acquires a slot. Raises TOOL_QUEUE_FULL, which leaves no record (TG-8)."""
        source = self._source
        if self._slots.locked() and self._queued >= source.max_queued:
            raise GatewayError(
                Code.RESOURCE_EXHAUSTED,
                "TOOL_QUEUE_FULL",
                f"The source {source.name} runs {source.max_in_flight} calls and {source.max_queued}"
                " more wait. Nothing was executed; try again later.",
                source=source.name,
            )
        self._queued += 1
        try:
            await self._slots.acquire()
        finally:
            self._queued -= 1

    def release(self) -> None:
        """Releases a slot."""
        self._slots.release()

    async def invoke(self, request: provider_pb.InvokeRequest, timeout_s: float, traceparent: str) -> Answer:
        """Runs a tool once. Failures are returned as an Answer; cancellations reach the provider."""
        tool = request.tool
        metadata = [("authorization", f"Bearer {self._key.service_token('tool-provider')}")]
        if traceparent:
            metadata.append(("traceparent", traceparent))
        try:
            answer = await asyncio.wait_for(
                self._stub.Invoke(request, metadata=metadata, timeout=timeout_s + 0.5), timeout_s
            )
        except asyncio.TimeoutError:
            limit = round(timeout_s * 1000)
            return Answer("lost", f"{tool} did not respond within its timeout of {limit} ms")
        except grpc.aio.AioRpcError as error:
            return _from_error(tool, error)
        outcome = answer.WhichOneof("outcome")
        if outcome == "failure":
            message = answer.failure.message.strip()[:MAX_MESSAGE] or f"{tool} failed."
            return Answer("error", message, f"tool_error:{tool}")
        return _from_result(tool, answer.result if outcome == "result" else None)


def _from_result(tool: str, result: tool_pb.ToolResult | None) -> Answer:
    kind: Any = result.kind if result is not None else None
    if result is not None and kind == tool_pb.RESULT_KIND_TEXT:
        return Answer("ok", result=tool_pb.ToolResult(kind=kind, content=result.content))
    if result is not None and kind == tool_pb.RESULT_KIND_IMAGE:
        if urlsplit(result.content).scheme in ("http", "https"):
            image = tool_pb.ToolResult(kind=kind, content=result.content, media_type=result.media_type)
            return Answer("ok", result=image)
    elif result is not None and kind == tool_pb.RESULT_KIND_JSON:
        try:
            value = parse_strict(result.content, "result", MAX_RESULT_BYTES)
            if isinstance(value, dict):
                json_result = tool_pb.ToolResult(kind=kind, content=result.content)
                return Answer("ok", result=json_result, value=value)
        except BadJsonError:
            pass
    message = f"{tool} returned a result that is not a JSON object."
    return Answer("error", message, f"tool_bad_result:{tool}")


def _from_error(tool: str, error: grpc.aio.AioRpcError) -> Answer:
    code, stop_reason = error.code(), f"tool_error:{tool}"
    if code in REFUSALS:
        return Answer("error", f"The provider of {tool} refused the call.", stop_reason)
    if code == Code.INTERNAL:
        return Answer("error", f"{tool} failed.", stop_reason)
    # gRPC reports a failed connection only if the request was not sent.
    if code == Code.UNAVAILABLE and "failed to connect" in (error.details() or ""):
        return Answer("error", f"The provider of {tool} cannot be reached.", stop_reason)
    return Answer("lost", f"The provider of {tool} did not respond")
