"""The checks between the writ check and the freeze check, in the order of TG-2. The first failure
decides."""

from dataclasses import dataclass
from typing import Any

from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb

from .registry import Registry, Tool
from .store import CallKey, Store
from .strict_json import BadJsonError, Json, args_hash, parse_strict


@dataclass(frozen=True)
class Verdict:
    """Result of the checks: a tool to run, or a refusal."""

    tool: Tool | None = None
    stop_reason: str = ""
    message: str = ""
    args_hash: str = ""
    #: Whether a refused call counts toward the tool's limit; true for a refused repeat.
    counts_tool: bool = False
    repetition: gateway_pb.Repetition | None = None


def judge(registry: Registry, store: Store, key: CallKey, writ: Any, arguments_json: str) -> Verdict:
    """Checks a call against the claims of its writ, which matches the call."""
    name: str = writ.tool
    made = store.count_run(key)
    if writ.HasField("max_tool_calls") and made >= writ.max_tool_calls:
        message = f"The run has made {made} calls; the limit is {writ.max_tool_calls}."
        return Verdict(stop_reason="max_tool_calls", message=message)
    if name not in writ.allowed_tools:
        message = f"Agent {writ.agent.name} may not call {name}."
        return Verdict(stop_reason=f"tool_denied:{name}", message=message)
    tool = registry.tools.get(name)
    if tool is None:
        message = f"Tool {name} does not exist at this gateway."
        return Verdict(stop_reason=f"tool_missing:{name}", message=message)
    if tool.digest != writ.definition_digest:
        message = f"The definition of {name} changed after the review. Propose a new call."
        return Verdict(stop_reason=f"tool_changed:{name}", message=message)
    try:
        args = parse_arguments(arguments_json)
    except BadJsonError as error:
        return Verdict(stop_reason=f"tool_bad_args:{name}", message=str(error))
    if problems := tool.problems(args):
        return Verdict(stop_reason=f"tool_bad_args:{name}", message=" ".join(problems))
    return _judge_repeats(tool, store, key, args_hash(args), no_defaults=writ.no_default_limits)


def _judge_repeats(tool: Tool, store: Store, key: CallKey, hashed: str, *, no_defaults: bool) -> Verdict:
    """Checks the limits of the tool; with `no_defaults` only the limits that tools.yaml sets."""
    limit = tool.set_max_calls_per_agent if no_defaults else tool.max_calls_per_agent
    repeats = tool.set_max_repeats if no_defaults else tool.max_repeats
    calls = store.counted(key, tool.name)
    if limit is not None and len(calls) >= limit:
        return Verdict(
            stop_reason="loop_detected:per_tool_limit",
            message=f"This agent has made {len(calls)} calls of {tool.name}; the limit is {limit}.",
            repetition=_repetition(tool, calls, limit, ""),
        )
    same = store.counted(key, tool.name, hashed)
    if repeats is not None and len(same) >= repeats:
        return Verdict(
            stop_reason="loop_detected:signature_repeat",
            message=f"This agent has made {len(same)} calls of {tool.name} with these same arguments"
            f" ({hashed}); the limit is {repeats}. Use the earlier result, or other"
            " arguments.",
            args_hash=hashed,
            counts_tool=True,
            repetition=_repetition(tool, same, repeats, hashed),
        )
    return Verdict(tool=tool, args_hash=hashed)


def _repetition(tool: Tool, calls: list[tuple[str, str]], limit: int, hashed: str) -> gateway_pb.Repetition:
    executed = [call_id for call_id, state in calls if state != "refused"]
    return gateway_pb.Repetition(
        tool=tool.name,
        args_hash=hashed,
        earlier_call_id=executed[-1] if executed else "",
        calls=len(calls),
        limit=limit,
    )


def parse_arguments(arguments_json: str) -> dict[str, Json]:
    """Parses the exact bytes that were signed (TG-4). Raises BadJsonError."""
    args = parse_strict(arguments_json, "arguments_json")
    if isinstance(args, dict):
        return args
    raise BadJsonError("arguments_json must be a JSON object.")
