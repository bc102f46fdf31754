"""VoidWrit and ResolveOutcome (TG-5, TG-8)."""

import json
import time

from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb
from writ.tool.v1 import tool_pb2 as tool_pb

from .calls import Calls
from .errors import Code, GatewayError, invalid
from .outcomes import Outcomes, cap, pick_fields, timestamp
from .store import Call, CallKey, Store
from .strict_json import BadJsonError, Json, parse_strict, sha256_hex
from .writs import key_of

MAX_RESULT_BYTES = 1_048_576


def void_writ(
    store: Store, outcomes: Outcomes, calls: Calls, key: CallKey, version: str
) -> gateway_pb.VoidWritResponse:
    """Voids the writ of a call (TG-8).

    Returns the receipt of the call, IN_FLIGHT if this process is executing it, or BURNT with a
    receipt if the call was never made."""
    with store.transaction():
        known = store.find_call(key)
        if known is None:
            burnt = Call(key.tenant, key.run_id, key.agent_instance, key.call_id, registry_version=version)
            message = "The writ was voided before the call was made."
            known = outcomes.record(burnt, "burnt", "cancelled", message)
        elif known.state == "intent":
            if calls.is_in_flight(key):
                return gateway_pb.VoidWritResponse(state=gateway_pb.VOID_STATE_IN_FLIGHT)
            known = outcomes.record_interrupted(known, "was interrupted")
    is_burnt = known.state == "burnt"
    state = gateway_pb.VOID_STATE_BURNT if is_burnt else gateway_pb.VOID_STATE_RECEIPT
    return gateway_pb.VoidWritResponse(state=state, receipt=known.receipt)


def resolve_outcome(
    store: Store, outcomes: Outcomes, request: gateway_pb.ResolveOutcomeRequest
) -> gateway_pb.ResolveOutcomeResponse:
    """Records the first resolution; later requests get it (TG-5)."""
    value = _read_result(request)
    digest = sha256_hex(
        json.dumps([request.outcome, request.result_json, request.resolved_by, request.comment])
    )
    with store.transaction():
        call = store.find_call(key_of(request.call))
        if call is None:
            message = f"This agent has no call {request.call.call_id}."
            raise GatewayError(Code.NOT_FOUND, "CALL_NOT_FOUND", message)
        if call.resolved_at is not None:
            if call.resolve_request_id == request.request_id and call.resolve_digest != digest:
                message = "request_id was used before for another resolution."
                raise invalid("REQUEST_ID_REUSED", message, "request_id")
        elif call.state != "unknown":
            message = f"The call {call.call_id} is {call.state}; only an unknown outcome can be resolved."
            raise GatewayError(Code.FAILED_PRECONDITION, "CALL_OUTCOME_KNOWN", message)
        else:
            call.resolve_request_id, call.resolve_digest = request.request_id, digest
            call.resolved_by, call.resolved_at = request.resolved_by, time.time()
            _record(outcomes, call, request, value)
    return gateway_pb.ResolveOutcomeResponse(
        receipt=call.receipt, resolve_time=timestamp(call.resolved_at or 0)
    )


def _record(outcomes: Outcomes, call: Call, request: gateway_pb.ResolveOutcomeRequest, value: Json) -> None:
    if request.outcome == gateway_pb.RESOLVED_OUTCOME_NOT_DONE:
        message = f"An operator confirmed that {call.tool} was not executed."
        outcomes.record(call, "error", f"tool_error:{call.tool}", message)
        return
    message = f"An operator confirmed that {call.tool} was executed."
    if value is None:
        outcomes.record(call, "ok", "", message)
        return
    result = tool_pb.ToolResult(kind=tool_pb.RESULT_KIND_JSON, content=request.result_json)
    outcomes.record(
        call,
        "ok",
        "",
        message,
        result=cap(result, MAX_RESULT_BYTES).SerializeToString(),
        picked=pick_fields(value, json.loads(call.result_fields)),
    )


def _read_result(request: gateway_pb.ResolveOutcomeRequest) -> Json:
    if not request.result_json:
        return None
    if request.outcome != gateway_pb.RESOLVED_OUTCOME_DONE:
        message = "result_json must be empty for a call that was not done."
        raise invalid("INVALID_RESULT", message, "result_json")
    try:
        value = parse_strict(request.result_json, "result_json", MAX_RESULT_BYTES)
    except BadJsonError as error:
        raise invalid("INVALID_RESULT", str(error), "result_json") from error
    if isinstance(value, dict):
        return value
    raise invalid("INVALID_RESULT", "result_json must be a JSON object.", "result_json")
