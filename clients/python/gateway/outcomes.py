"""Outcomes and their receipts (TG-5, TG-8)."""

import json
import time

from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from writ.identity.v1 import claims_pb2 as claims_pb
from writ.tool.v1 import tool_pb2 as tool_pb

from .store import Call, Store
from .strict_json import Json, sha256_hex
from .tokens import RECEIPT_LIFE_S, SigningKey

STATUS = {
    "ok": claims_pb.CALL_STATUS_OK,
    "error": claims_pb.CALL_STATUS_ERROR,
    "refused": claims_pb.CALL_STATUS_REFUSED,
    "unknown": claims_pb.CALL_STATUS_UNKNOWN,
    "burnt": claims_pb.CALL_STATUS_VOID,
}
MAX_FIELD_BYTES = 256
MAX_FIELDS_BYTES = 6_144
MAX_PATHS = 64
MAX_PATH_BYTES = 3_072


class Outcomes:
    """Writes outcomes, each with its receipt. Call it inside a transaction."""

    def __init__(self, store: Store, key: SigningKey) -> None:
        """`key` signs the receipts."""
        self._store = store
        self._key = key

    def record(self, call: Call, state: str, stop_reason: str, message: str, **more: object) -> Call:
        """Ends `call` with a receipt; `more` has further columns and, as `picked`, the result fields."""
        picked = more.pop("picked", {})
        call.state, call.stop_reason, call.message = state, stop_reason, message
        call.ended_at = time.time()
        call.revision += 1
        for name, value in more.items():
            setattr(call, name, value)
        call.receipt = self._key.sign(
            "receipt", "supervisor", call.call_id, _claims(call, picked), RECEIPT_LIFE_S
        )
        self._store.add_report(sha256_hex(call.receipt), "receipt", call.receipt.encode())
        # The run may have ended during the call with a retention policy that keeps no results.
        if any(freeze.purges for freeze in self._store.freezes_over(call.key)):
            call.result, call.message = None, ""
        self._store.write_call(call)
        return call

    def record_interrupted(self, call: Call, why: str) -> Call:
        """Ends an interrupted call: as error for a read-only tool, as unknown otherwise."""
        if call.side_effect == "read_only":
            return self.record(call, "error", f"tool_error:{call.tool}", f"{call.tool} {why}.")
        message = f"{call.tool} {why}, and its outcome is unknown."
        return self.record(call, "unknown", f"outcome_unknown:{call.tool}", message)


def _claims(call: Call, picked: object) -> claims_pb.ReceiptClaims:
    result = tool_pb.ToolResult.FromString(call.result) if call.result is not None else None
    claims = claims_pb.ReceiptClaims(
        tenant=call.tenant,
        run_id=call.run_id,
        call_id=call.call_id,
        tool=call.tool,
        writ_id=call.writ_id,
        status=STATUS[call.state],
        stop_reason=call.stop_reason,
        result_sha256=sha256_hex(result.content) if result is not None else "",
        result_fields=ParseDict(picked, Struct()),
        args_sha256=call.args_sha256,
        definition_digest=call.definition_digest,
        registry_version=call.registry_version,
        start_time=timestamp(call.started_at),
        end_time=timestamp(call.ended_at or call.started_at),
        revision=call.revision,
        resolved_by=call.resolved_by,
        step=call.step,
    )
    claims.agent.name, claims.agent.instance = call.agent_name, call.agent_instance
    return claims


def timestamp(at: float) -> Timestamp:
    """A protobuf timestamp."""
    made = Timestamp()
    made.FromNanoseconds(int(at * 1e9))
    return made


def cap(result: tool_pb.ToolResult, limit: int) -> tool_pb.ToolResult:
    """Truncates the result to `limit` bytes of UTF-8 without splitting a character.

    A truncated result is text (TG-6)."""
    data = result.content.encode()
    result.full_size_bytes, result.full_sha256 = len(data), sha256_hex(data)
    if len(data) > limit:
        result.kind, result.media_type = tool_pb.RESULT_KIND_TEXT, ""
        result.content, result.truncated = _cut(data, limit), True
    return result


def _cut(data: bytes, limit: int) -> str:
    return data[:limit].decode(errors="ignore")


def fields_fit(paths: list[str]) -> bool:
    """Whether the fields at these paths fit in a receipt; checked before execution."""
    size = sum(len(json.dumps(path, ensure_ascii=False).encode()) for path in paths)
    return len(paths) <= MAX_PATHS and size <= MAX_PATH_BYTES


def pick_fields(value: Json, paths: list[str]) -> dict[str, Json]:
    """Returns the values that exist at dotted paths (SV-3).

    Long strings are truncated. Objects and arrays, and strings that exceed the remaining size, are
    returned empty."""
    picked: dict[str, Json] = {}
    left = MAX_FIELDS_BYTES
    for path in paths:
        found: Json = value
        for name in path.split("."):
            if not isinstance(found, dict) or name not in found:
                break
            found = found[name]
        else:
            shown = _cut(found.encode(), MAX_FIELD_BYTES) if isinstance(found, str) else found
            if isinstance(shown, dict | list):
                shown = type(shown)()
            size = len(json.dumps(shown, ensure_ascii=False).encode())
            fits = size <= left or not isinstance(shown, str)
            picked[path] = shown if fits else ""
            left -= min(size, left)
    return picked
