"""The tools of tools.yaml and their argument contracts (TG-3, TG-6)."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from .strict_json import Json, sha256_hex, trim

SIDE_EFFECTS = ("read_only", "idempotent", "destructive")
MAX_NAMED = 16
MAX_CALLS_PER_AGENT = 2
MAX_REPEATS = 1
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PARTS = frozenset({"tools", "sources"})
_TOOL_REQUIRED = frozenset({"name", "description", "input_schema", "side_effect", "risk", "source"})
_TOOL_OPTIONAL = frozenset({"timeout", "max_output_bytes", "max_calls_per_agent", "max_repeats"})
_PROVIDER_REQUIRED = frozenset({"kind", "address"})
_PROVIDER_OPTIONAL = frozenset({"max_in_flight", "max_queued"})
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _decimals(_: Any, decimals: int, value: Json, __: Any) -> Iterator[ValidationError]:
    """Implements the keyword `decimals`, the maximum number of decimal places: money is never rounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > decimals:
        yield ValidationError(f"more than {decimals} decimal places")


_Validator = extend(Draft202012Validator, {"decimals": _decimals})


@dataclass(frozen=True)
class Source:
    """A server of ToolProviderService and its concurrency limits."""

    name: str
    address: str
    max_in_flight: int
    max_queued: int


@dataclass(frozen=True)
class Tool:
    """A tool as tools.yaml declares it, with defaults applied."""

    name: str
    description: str
    schema: dict[str, Any]
    side_effect: str
    timeout_s: float
    max_output_bytes: int
    #: None selects the default limit, which does not apply to a writ with no_default_limits.
    set_max_calls_per_agent: int | None
    set_max_repeats: int | None
    risk: float
    source: str
    #: SHA-256 of the definition; part of every writ (TG-1).
    digest: str

    @property
    def max_calls_per_agent(self) -> int:
        """The largest number of calls by one agent of a run."""
        return _or(self.set_max_calls_per_agent, MAX_CALLS_PER_AGENT)

    @property
    def max_repeats(self) -> int:
        """The largest number of calls with the same arguments by one agent of a run."""
        return _or(self.set_max_repeats, MAX_REPEATS)

    def problems(self, args: dict[str, Json]) -> list[str]:
        """The problems of arguments at execution, one sentence each."""
        trimmed = trim(args)
        assert isinstance(trimmed, dict)
        properties: dict[str, Any] = self.schema.get("properties", {})
        required = self.schema.get("required", [])
        found = [
            f"Argument {name[:64]} is not defined by the tool."
            for name in trimmed
            if name not in properties and not self._admits(name)
        ]
        for name, spec in properties.items():
            if name not in trimmed:
                if name in required:
                    found.append(f"Argument {name} is required and missing.")
            elif (name in required and trimmed[name] == "") or not self._accepts(spec, trimmed[name]):
                found.append(f"Argument {name} does not fit its schema.")
        if not found and not _Validator(self.schema).is_valid(trimmed):
            found.append("The arguments together break a rule of the schema.")
        more = [f"And {len(found) - MAX_NAMED} more."] if len(found) > MAX_NAMED else []
        return found[:MAX_NAMED] + more

    def _accepts(self, spec: Any, value: Json) -> bool:
        """Returns whether a value matches the schema of its argument, with the $defs of the input
        schema."""
        definitions = {key: self.schema[key] for key in ("$defs",) if key in self.schema}
        return bool(_Validator({**definitions, "allOf": [spec]}).is_valid(value))

    def _admits(self, name: str) -> bool:
        extra = self.schema.get("additionalProperties", False) is not False
        patterns = self.schema.get("patternProperties", {})
        return extra or any(re.search(pattern, name) for pattern in patterns)


@dataclass(frozen=True)
class Registry:
    """Every tool of the gateway, ordered by name."""

    tools: Mapping[str, Tool]
    sources: Mapping[str, Source]
    #: Content hash of the whole registry.
    version: str


def load_registry(path: Path, variables: Mapping[str, str] = os.environ) -> Registry:
    """Reads tools.yaml; `${NAME}` and `${NAME:-default}` in addresses are replaced from `variables`.

    Tools run in programs that serve ToolProviderService. `WRIT_SOURCE_<NAME>` is the address of such
    a program: it is required for a source of another kind, and replaces the address of a provider.
    Raises ValueError naming what is wrong. A key that this gateway does not implement, such as
    `allow`, or `tls` of a source, is rejected and not ignored (SYS-4)."""
    document = yaml.safe_load(path.read_text())
    _check_keys(str(path), document, _PARTS)
    for entry in document["tools"]:
        name = entry.get("name", "without a name")
        _check_keys(f"{path}: tool {name}", entry, _TOOL_REQUIRED, _TOOL_OPTIONAL)
    sources = {name: _source(name, entry, variables) for name, entry in document["sources"].items()}
    tools: dict[str, Tool] = {}
    for entry in sorted(document["tools"], key=lambda entry: str(entry["name"])):
        tool = _tool(entry)
        if tool.name in tools or tool.source not in sources:
            raise ValueError(f"{path}: {tool.name} is defined twice, or source {tool.source} is missing.")
        tools[tool.name] = tool
    version = sha256_hex("".join(tool.digest for tool in tools.values()))
    return Registry(tools, sources, version)


def _check_keys(
    place: str, entry: Mapping[str, Any], required: frozenset[str], optional: frozenset[str] = frozenset()
) -> None:
    if unknown := set(entry) - required - optional:
        raise ValueError(f"{place}: {', '.join(sorted(unknown))} is not supported here.")
    if missing := required - set(entry):
        raise ValueError(f"{place}: {', '.join(sorted(missing))} is missing; this gateway needs it.")


def _tool(entry: Mapping[str, Any]) -> Tool:
    name, side_effect, schema = entry["name"], entry["side_effect"], entry["input_schema"]
    if not _NAME.fullmatch(name) or side_effect not in SIDE_EFFECTS:
        raise ValueError(f"{name}: the name or the side_effect {side_effect} is invalid.")
    if schema.get("type") != "object":
        raise ValueError(f"{name}: input_schema must be of the type object.")
    Draft202012Validator.check_schema(schema)
    described = {
        "name": name,
        "description": str(entry["description"]).strip(),
        "schema": schema,
        "side_effect": side_effect,
        "timeout_s": _seconds(entry.get("timeout", "30s")),
        "max_output_bytes": int(entry.get("max_output_bytes", 65_536)),
        "set_max_calls_per_agent": _int(entry.get("max_calls_per_agent")),
        "set_max_repeats": _int(entry.get("max_repeats")),
        "risk": float(entry["risk"]),
        "source": entry["source"],
    }
    return Tool(**described, digest=sha256_hex(json.dumps(described, sort_keys=True)))


def _int(value: Any) -> int | None:
    return None if value is None else int(value)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _source(name: str, entry: Mapping[str, Any], variables: Mapping[str, str]) -> Source:
    setting = f"WRIT_SOURCE_{name.upper().replace('-', '_')}"
    address = variables.get(setting, "")
    if not address and entry.get("kind") != "provider":
        raise ValueError(f"{name}: its kind is not supported; set {setting} to the address of a provider.")
    if entry.get("kind") == "provider":
        _check_keys(f"source {name}", entry, _PROVIDER_REQUIRED, _PROVIDER_OPTIONAL)
    if not address:
        address = re.sub(
            r"\$\{(\w+)(?::-([^}]*))?\}",
            lambda found: variables.get(found[1]) or found[2] or "",
            entry["address"],
        )
    if not re.fullmatch(r"[^\s:]+:\d{1,5}", address):
        raise ValueError(f"{name}: its address must be host:port, such as 127.0.0.1:50061.")
    return Source(name, address, int(entry.get("max_in_flight", 32)), int(entry.get("max_queued", 256)))


def _seconds(text: str) -> float:
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text):
        return float(found[1]) * _UNITS[found[2]]
    raise ValueError(f"{text} is not a duration such as 30s.")
