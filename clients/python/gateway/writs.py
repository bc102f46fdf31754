"""The writ: a call is executed only under a writ for exactly this call (TG-1)."""

import time
from typing import Any

from writ.identity.v1 import claims_pb2 as claims_pb
from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb

from .errors import Code, GatewayError, denied
from .outcomes import fields_fit
from .store import Call, CallKey
from .strict_json import sha256_hex
from .tokens import ID, KeyRing, Verified, verify

SHA256_LENGTH = 64
ORIGINS = ("original", "supervisor_revised", "human_revised")


async def read_writ(ring: KeyRing, request: gateway_pb.CallToolRequest) -> Verified:
    """Returns the verified writ of exactly this call; the writ may be expired (TG-1)."""
    key = key_of(request.call)
    try:
        shown = await verify(ring, "writ", request.writ, ("supervisor",), claims_pb.WritClaims())
    except GatewayError as error:
        if error.code != Code.UNAUTHENTICATED:
            raise
        raise denied("WRIT_INVALID", error.message) from error
    writ = shown.claims
    if (bad := _bad_field(writ)) or shown.subject != writ.call_id:
        raise denied("WRIT_INVALID", f"The {bad or 'subject'} of the writ is missing or malformed.")
    pairs = {
        "tenant": (writ.tenant, key.tenant),
        "run_id": (writ.run_id, key.run_id),
        "agent_instance": (writ.agent.instance, key.agent_instance),
        "call_id": (writ.call_id, key.call_id),
        "tool": (writ.tool, request.tool),
        "arguments_json": (writ.args_sha256, sha256_hex(request.arguments_json)),
    }
    for name, (ordered, wanted) in pairs.items():
        if ordered != wanted:
            message = f"The writ is for another call: its {name} differs from that of the request."
            raise denied("WRIT_MISMATCH", message, field=name, writ_id=shown.id)
    if not fields_fit(list(writ.result_fields)):
        message = "The writ requests more result fields than a receipt can hold."
        raise denied("WRIT_INVALID", message, field="result_fields", writ_id=shown.id)
    return shown


def key_of(call: gateway_pb.CallKey) -> CallKey:
    """The key of a call."""
    return CallKey(call.tenant, call.run_id, call.agent_instance, call.call_id)


def _bad_field(writ: Any) -> str | None:
    """The first invalid claim."""
    ids = {
        "tenant": writ.tenant,
        "run_id": writ.run_id,
        "agent": writ.agent.name,
        "agent.instance": writ.agent.instance,
        "call_id": writ.call_id,
    }
    for name, value in ids.items():
        if not ID.fullmatch(value):
            return name
    if len(writ.args_sha256) != SHA256_LENGTH:
        return "args_sha256"
    if writ.executed_from not in ORIGINS:
        return "executed_from"
    return next((name for name in ("definition_digest", "decision_id") if not getattr(writ, name)), None)


def refuse_other(known: Call, request: gateway_pb.CallToolRequest) -> None:
    """Rejects a call id that was used with another tool or arguments. A voided call (state `burnt`) has no
    tool or arguments, so it is not rejected (TG-1)."""
    if known.state == "burnt":
        return
    same = {
        "tool": known.tool == request.tool,
        "arguments_json": known.args_sha256 == sha256_hex(request.arguments_json),
    }
    for name, fits in same.items():
        if not fits:
            message = f"The call id was used before with another {name}. Use a new call id."
            raise denied("WRIT_MISMATCH", message, field=name)


def refuse_expired(shown: Verified) -> None:
    """Rejects execution under an expired writ; recorded outcomes are returned (TG-1)."""
    if time.time() >= shown.expires_at:
        message = "The writ has expired. Call GetDecision for a new one."
        raise denied("WRIT_EXPIRED", message, writ_id=shown.id)
