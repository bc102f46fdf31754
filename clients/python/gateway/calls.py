"""CallTool: a call is executed once, under a valid writ for exactly this call (TG-1, TG-2, TG-5)."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from writ.supervision.v1 import supervision_service_pb2 as supervision_pb
from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb
from writ.tool.v1 import tool_pb2 as tool_pb
from writ.tool.v1 import tool_provider_service_pb2 as provider_pb

from .access import Caller
from .checks import judge
from .errors import Code, GatewayError
from .outcomes import STATUS, Outcomes, cap, pick_fields, timestamp
from .registry import Registry, Tool
from .sources import Answer, OpenSource
from .store import Call, CallKey, Freeze, Store, scopes_over
from .strict_json import sha256_hex
from .tokens import KeyRing, Verified
from .writs import key_of, read_writ, refuse_expired, refuse_other


@dataclass
class InFlightCall:
    """A call that this process is executing; repeated requests for it wait for the same outcome."""

    key: CallKey
    tool: str
    task: "asyncio.Task[Call]" = field(init=False)
    #: Receives the error of a cancelled call.
    cancelled: "asyncio.Future[GatewayError]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    started_at: float | None = None
    #: The call continues after all callers disconnect; a repeated request returns its outcome.
    outlives_callers: bool = False
    waiting: int = 0

    def cancel(self, error: GatewayError) -> None:
        """Cancels the tool, or prevents its start."""
        if not self.cancelled.done():
            self.cancelled.set_result(error)


class Calls:
    """The calls of this gateway: recorded and in flight."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        outcomes: Outcomes,
        ring: KeyRing,
        sources: Mapping[str, OpenSource],
    ) -> None:
        """Records as unknown the destructive calls that a previous process left without an outcome
        (TG-5)."""
        self._registry = registry
        self._store = store
        self._outcomes = outcomes
        self._ring = ring
        self._sources = sources
        self._in_flight: dict[CallKey, InFlightCall] = {}
        for call in store.calls_without_outcome():
            # A call that may be executed again gets no outcome until a client repeats it.
            if call.side_effect == "destructive":
                with store.transaction():
                    outcomes.record_interrupted(call, "was interrupted")

    def is_in_flight(self, key: CallKey) -> bool:
        """Whether this process is working on the call."""
        return key in self._in_flight

    def within(self, scope: str) -> list[InFlightCall]:
        """The in-flight calls of a scope."""
        return [entry for key, entry in self._in_flight.items() if scope in scopes_over(key)]

    async def call_tool(
        self, request: gateway_pb.CallToolRequest, caller: Caller
    ) -> gateway_pb.CallToolResponse:
        """Handles CallTool. A denied call, such as a call without a matching writ, is recorded for the
        supervisor."""
        key = key_of(request.call)
        try:
            shown = await read_writ(self._ring, request)
            caller.assert_serves(key.tenant)
            return await self._join_or_start(request, key, shown, caller)
        except GatewayError as error:
            if error.code == Code.PERMISSION_DENIED:
                with self._store.transaction():
                    self._report_refusal(request, key, caller, error)
            raise

    async def _join_or_start(
        self,
        request: gateway_pb.CallToolRequest,
        key: CallKey,
        shown: Verified,
        caller: Caller,
    ) -> gateway_pb.CallToolResponse:
        self.admit_worker(key, caller.epoch)
        known = self._store.find_call(key)
        if known is not None:
            refuse_other(known, request)
            if known.state != "intent":
                return to_response(known, replayed=True)
        entry = self._in_flight.get(key)
        joined = entry is not None
        if entry is None:
            refuse_expired(shown)
            entry = self._in_flight[key] = InFlightCall(key, request.tool)
            entry.task = asyncio.create_task(self._attempt(entry, request, shown, caller))
            # Callers receive the error. Reading it here prevents the warning "exception was never
            # retrieved" if no caller is left.
            entry.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        call = await _wait_for(entry)
        refuse_other(call, request)
        return to_response(call, replayed=joined)

    def admit_worker(self, key: CallKey, epoch: int) -> None:
        """Rejects a worker that lost its lease, and stores a higher epoch (RT-2)."""
        if epoch > self._refuse_stale(key, epoch):
            with self._store.transaction():
                self._store.remember_epoch(key, epoch)

    def _refuse_stale(self, key: CallKey, epoch: int) -> int:
        """Returns the highest epoch seen. Raises STALE_EPOCH when `epoch` is lower."""
        seen = self._store.epoch(key)
        if epoch >= seen:
            return seen
        message = f"Epoch {epoch} is stale: epoch {seen} was seen, so another worker has the lease."
        raise GatewayError(Code.FAILED_PRECONDITION, "STALE_EPOCH", message)

    async def _attempt(
        self,
        entry: InFlightCall,
        request: gateway_pb.CallToolRequest,
        shown: Verified,
        caller: Caller,
    ) -> Call:
        """Acquires a slot of the source, records the intent, runs the tool and records the outcome."""
        tool = self._registry.tools.get(request.tool)
        source = self._sources[tool.source] if tool else None
        held = False
        try:
            if source is not None:
                held = await _acquire_slot(entry, source)
            with self._store.transaction():
                call, run = self._begin(request, shown, caller)
            if run is None or source is None:
                return call
            entry.started_at, entry.outlives_callers = call.started_at, run.side_effect == "destructive"
            started = time.monotonic()
            answer = await _run(entry, source, _invocation(call, run, request), run, caller)
            with self._store.transaction():
                return self._end(entry, call, run, answer, time.monotonic() - started)
        finally:
            if source is not None and held:
                source.release()
            del self._in_flight[entry.key]

    def _begin(
        self, request: gateway_pb.CallToolRequest, shown: Verified, caller: Caller
    ) -> tuple[Call, Tool | None]:
        """Runs the checks and records the intent, or records a refusal with its receipt (TG-2).

        Raises an error for a stale epoch, an expired writ or a frozen scope. Call it inside a
        transaction."""
        key, writ = key_of(request.call), shown.claims
        # Lease and writ may have expired while the call waited for a slot.
        self._refuse_stale(key, caller.epoch)
        known = self._store.find_call(key)
        if known is not None:
            return self._resume(known, shown)
        refuse_expired(shown)
        verdict = judge(self._registry, self._store, key, writ, request.arguments_json)
        tool = verdict.tool or self._registry.tools.get(request.tool)
        call = Call(
            key.tenant,
            key.run_id,
            key.agent_instance,
            key.call_id,
            agent_name=writ.agent.name,
            step=request.step,
            tool=request.tool,
            side_effect=tool.side_effect if tool else "destructive",
            args_sha256=writ.args_sha256,
            args_hash=verdict.args_hash,
            counts_tool=verdict.tool is not None or verdict.counts_tool,
            counts_signature=verdict.tool is not None,
            writ_id=shown.id,
            definition_digest=tool.digest if tool else "",
            registry_version=self._registry.version,
            result_fields=json.dumps(list(writ.result_fields)),
        )
        if verdict.tool is None:
            if verdict.repetition is not None:
                call.repetition = verdict.repetition.SerializeToString()
            self._outcomes.record(call, "refused", verdict.stop_reason, verdict.message)
            return call, None
        self._refuse_frozen(key)
        self._store.write_call(call)
        return call, verdict.tool

    def _resume(self, known: Call, shown: Verified) -> tuple[Call, Tool | None]:
        """Resumes a call without an outcome.

        Returns the call, with its tool if it may be executed again. Otherwise records it as
        interrupted. Returns a call that already has an outcome unchanged."""
        if known.state != "intent":
            return known, None
        tool = self._registry.tools.get(known.tool)
        changed = tool is None or tool.digest != known.definition_digest
        if known.side_effect == "destructive" or changed:
            return self._outcomes.record_interrupted(known, "was interrupted"), None
        refuse_expired(shown)
        self._refuse_frozen(known.key)
        return known, tool

    def _end(self, entry: InFlightCall, call: Call, tool: Tool, answer: Answer, duration_s: float) -> Call:
        """Records the outcome and its receipt.

        For a cancelled call that may be executed again, records nothing and raises the error of the
        cancellation."""
        if answer.ending == "lost":
            if entry.cancelled.done() and tool.side_effect != "destructive":
                raise entry.cancelled.result()
            call.duration_s = duration_s
            return self._outcomes.record_interrupted(call, answer.message.removeprefix(f"{tool.name} "))
        if answer.ending == "error" or answer.result is None:
            return self._outcomes.record(
                call, "error", answer.stop_reason, answer.message, duration_s=duration_s
            )
        result = cap(answer.result, tool.max_output_bytes)
        message = f"The result of {tool.name} was cut to {tool.max_output_bytes} bytes."
        return self._outcomes.record(
            call,
            "ok",
            "",
            message if result.truncated else "",
            duration_s=duration_s,
            result=result.SerializeToString(),
            picked=pick_fields(answer.value, json.loads(call.result_fields)),
        )

    def _refuse_frozen(self, key: CallKey) -> None:
        for freeze in self._store.freezes_over(key)[:1]:
            raise frozen_error(freeze)

    def _report_refusal(
        self,
        request: gateway_pb.CallToolRequest,
        key: CallKey,
        caller: Caller,
        error: GatewayError,
    ) -> None:
        """Records a denied call for the supervisor's audit log (TG-1)."""
        tenant = key.tenant
        if caller.tenants and tenant not in caller.tenants:
            # A caller must not write into the audit log of a tenant that it does not serve.
            tenant = caller.tenants[0]
        refusal = supervision_pb.RefusedAttempt(
            tenant=tenant,
            run_id=key.run_id,
            agent_instance=key.agent_instance,
            call_id=key.call_id,
            reason=error.reason,
            field=error.metadata.get("field", ""),
            writ_sha256=sha256_hex(request.writ),
            presented_by=caller.replica,
        )
        refusal.refusal_id = f"refusal_{sha256_hex(refusal.SerializeToString())[:40]}"
        refusal.refuse_time.CopyFrom(timestamp(time.time()))
        self._store.add_report(refusal.refusal_id, "refusal", refusal.SerializeToString())


async def _wait_for(entry: InFlightCall) -> Call:
    """Waits for the outcome of a call.

    When the last caller disconnects, a call that may be executed again is cancelled (SUP-6)."""
    entry.waiting += 1
    try:
        return await asyncio.shield(entry.task)
    finally:
        entry.waiting -= 1
        if entry.waiting == 0 and not entry.outlives_callers:
            reason = "Every caller of the call disconnected."
            entry.cancel(GatewayError(Code.CANCELLED, "CANCELLED", reason))


async def _first(*futures: "asyncio.Future[Any]") -> None:
    """Waits until one of the futures is done."""
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def _acquire_slot(entry: InFlightCall, source: OpenSource) -> bool:
    """Waits for a slot of the source; raises the reason when the call is cancelled."""
    task = asyncio.ensure_future(source.acquire())
    await _first(task, entry.cancelled)
    if not task.done():
        task.cancel()
        raise entry.cancelled.result()
    task.result()
    if entry.cancelled.done():
        source.release()
        raise entry.cancelled.result()
    return True


async def _run(
    entry: InFlightCall,
    source: OpenSource,
    request: provider_pb.InvokeRequest,
    tool: Tool,
    caller: Caller,
) -> Answer:
    """Runs a tool once, until its timeout or a cancellation. Never raises."""
    request.deadline.CopyFrom(timestamp(time.time() + tool.timeout_s))
    task = asyncio.ensure_future(source.invoke(request, tool.timeout_s, caller.traceparent))
    await _first(task, entry.cancelled)
    if not task.done():
        task.cancel()
        return Answer("lost", f"{tool.name} was cancelled")
    return task.result()


def _invocation(call: Call, tool: Tool, request: gateway_pb.CallToolRequest) -> provider_pb.InvokeRequest:
    parts = (call.tenant, call.run_id, call.agent_instance, call.call_id)
    return provider_pb.InvokeRequest(
        tool=tool.name,
        arguments_json=request.arguments_json,
        # The same key for every repeat of one call (TG-5).
        idempotency_key=f"idem_{sha256_hex(json.dumps(parts))[:40]}",
        tenant=call.tenant,
        run_id=call.run_id,
        agent_name=call.agent_name,
        call_id=call.call_id,
    )


def frozen_error(freeze: Freeze) -> GatewayError:
    """The error of a frozen call, which leaves no receipt and can be repeated (TG-8)."""
    by = f" by {freeze.ordered_by}" if freeze.ordered_by else ""
    if freeze.cause == "halt":
        message = f"Halted{by}: {freeze.reason}"
        return GatewayError(Code.FAILED_PRECONDITION, "HALTED", message, order_id=freeze.order_id)
    message = f"Frozen{by} ({freeze.cause}): {freeze.reason}"
    return GatewayError(Code.FAILED_PRECONDITION, "FROZEN", message, order_id=freeze.order_id)


def to_response(call: Call, *, replayed: bool) -> gateway_pb.CallToolResponse:
    """The response for a call with an outcome."""
    response = gateway_pb.CallToolResponse(
        status=STATUS[call.state],
        stop_reason=call.stop_reason,
        message=call.message,
        receipt=call.receipt,
        replayed=replayed,
    )
    if call.result is not None:
        response.result.CopyFrom(tool_pb.ToolResult.FromString(call.result))
    if call.repetition:
        response.repetition.CopyFrom(gateway_pb.Repetition.FromString(call.repetition))
    if call.duration_s is not None:
        response.duration.FromMilliseconds(round(call.duration_s * 1000))
    return response
