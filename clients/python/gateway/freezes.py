"""Freeze and Unfreeze: orders that freeze a scope until they are lifted (SV-9, SUP-8)."""

import asyncio
from typing import Any

from writ.control.v1 import freeze_pb2 as freeze_pb
from writ.supervision.v1 import supervision_pb2 as supervision_pb
from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb

from .calls import Calls, InFlightCall, frozen_error
from .errors import invalid
from .outcomes import timestamp
from .store import Freeze, Store

CAUSES = {
    freeze_pb.FREEZE_CAUSE_HALT: "halt",
    freeze_pb.FREEZE_CAUSE_CANCEL: "cancel",
    freeze_pb.FREEZE_CAUSE_DEADLINE: "deadline",
    freeze_pb.FREEZE_CAUSE_END: "end",
}
WITHOUT_RESULTS = (
    supervision_pb.HISTORY_RETENTION_NONE,
    supervision_pb.HISTORY_RETENTION_RUN,
)
DEFAULT_WAIT_S = 1.0


async def freeze(store: Store, calls: Calls, order: freeze_pb.FreezeOrder) -> gateway_pb.FreezeResponse:
    """Rejects new calls of a scope, cancels in-flight calls and waits for them."""
    scope, run = _scope(order.scope)
    made = Freeze(
        order.order_id,
        scope,
        CAUSES[order.cause],
        order.reason,
        order.ordered_by,
        order.cause == freeze_pb.FREEZE_CAUSE_END and order.retention in WITHOUT_RESULTS,
    )
    with store.transaction():
        known = store.find_freeze(order.order_id)
        if known is not None and known[0].scope != scope:
            message = "order.order_id was used before for another scope."
            raise invalid("REQUEST_ID_REUSED", message, "order.order_id")
        if known is None:
            store.write_freeze(made)
        elif known[1]:
            # A late repeat of a lifted order has no effect.
            return gateway_pb.FreezeResponse()
        if made.purges and run is not None:
            store.purge_results(*run)
    for entry in calls.within(scope):
        entry.cancel(frozen_error(made))
    wait = order.wait.ToMilliseconds() / 1000 if order.HasField("wait") else DEFAULT_WAIT_S
    if tasks := [entry.task for entry in calls.within(scope)]:
        await asyncio.wait(tasks, timeout=wait)
    left = [_in_flight(entry) for entry in calls.within(scope) if entry.started_at is not None]
    return gateway_pb.FreezeResponse(in_flight=left)


def unfreeze(store: Store, order_id: str) -> gateway_pb.UnfreezeResponse:
    """Lifts one order; other orders stay in force."""
    with store.transaction():
        return gateway_pb.UnfreezeResponse(lifted=store.lift_freeze(order_id))


def _scope(scope: freeze_pb.Scope) -> tuple[str, tuple[str, str, str] | None]:
    """The key of a scope, and the tenant, run and agent whose results it may purge."""
    kind = scope.WhichOneof("kind")
    named: Any = getattr(scope, kind)
    if kind == "everything":
        return "*", None
    if kind == "tenant":
        return named, None
    agent = named.agent_instance if kind == "agent" else ""
    name = "/".join(part for part in (named.tenant, named.run_id, agent) if part)
    return name, (named.tenant, named.run_id, agent)


def _in_flight(entry: InFlightCall) -> freeze_pb.InFlightCall:
    key = entry.key
    return freeze_pb.InFlightCall(
        tenant=key.tenant,
        run_id=key.run_id,
        agent_instance=key.agent_instance,
        call_id=key.call_id,
        target=entry.tool,
        start_time=timestamp(entry.started_at or 0),
    )
