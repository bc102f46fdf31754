"""Authentication and authorization of every RPC (SYS-6)."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import protovalidate
from writ.identity.v1 import claims_pb2 as claims_pb

from .errors import DETAILS_KEY, Code, GatewayError, denied, invalid, unauthenticated
from .tokens import SKEW_S, KeyRing, verify

#: The services that call on behalf of agents; agent-proxy does so for external agents.
AGENT_HOSTS = ("agent-worker", "agent-proxy")
#: The services that may call each RPC, and whether agent-worker and agent-proxy also need an agent
#: token.
CALLERS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "ListTools": (("supervisor", *AGENT_HOSTS), True),
    "CallTool": (AGENT_HOSTS, False),
    "GetReceipt": (("supervisor", *AGENT_HOSTS), True),
    "VoidWrit": (("supervisor",), False),
    "ResolveOutcome": (("supervisor",), False),
    "Freeze": (("supervisor",), False),
    "Unfreeze": (("supervisor",), False),
}
SERVICES = ("supervisor", *AGENT_HOSTS)

log = logging.getLogger("gateway")

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True)
class Caller:
    """The authenticated caller."""

    service: str
    replica: str
    #: Tenants that the caller serves; empty means all.
    tenants: tuple[str, ...]
    #: The agent of an agent token.
    agent: Any = None
    epoch: int = 0
    traceparent: str = ""

    def assert_serves(self, tenant: str) -> None:
        """Rejects a tenant that the caller does not serve, so that a compromised worker cannot reach it."""
        if self.tenants and tenant not in self.tenants:
            raise denied("TENANT_NOT_SERVED", f"This {self.service} does not serve {tenant}.")


class Gate:
    """Runs RPCs: authorization, validation, handler and error mapping."""

    def __init__(self, ring: KeyRing) -> None:
        """`ring` holds the public keys of the callers."""
        self._ring = ring

    async def answer(
        self,
        method: str,
        request: Q,
        context: "grpc.aio.ServicerContext[Any, Any]",
        handler: Callable[[Q, Caller], Awaitable[R]],
    ) -> R:
        """Returns the response of `handler`, or aborts the RPC with google.rpc.ErrorInfo (SYS-3)."""
        try:
            headers = {key: str(value) for key, value in context.invocation_metadata() or ()}
            caller = await self._authenticate(method, headers)
            validate(request)
            return await handler(request, caller)
        except GatewayError as error:
            failure = error
        except Exception:
            # Internal errors are logged; callers get no details.
            log.exception("%s failed", method)
            failure = GatewayError(Code.INTERNAL, "INTERNAL", "The gateway failed.")
        details = ((DETAILS_KEY, failure.details()),)
        await context.abort(failure.code, failure.message, details)
        raise AssertionError("abort raises")

    async def _authenticate(self, method: str, headers: Mapping[str, str]) -> Caller:
        services, needs_agent = CALLERS[method]
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unauthenticated("TOKEN_MISSING", f"{method} requires a service token.")
        shown = await verify(self._ring, "service", token, SERVICES, claims_pb.ServiceClaims())
        name = shown.claims.name
        if time.time() >= shown.expires_at + SKEW_S:
            raise unauthenticated("TOKEN_EXPIRED", "The service token has expired.")
        if name != shown.issuer or shown.subject != name or name not in services:
            raise denied("CALLER_NOT_ALLOWED", f"A {shown.issuer} may not call {method}.")
        caller = {
            "service": name,
            "replica": shown.claims.replica,
            "tenants": tuple(shown.claims.tenants),
            "traceparent": headers.get("traceparent", ""),
        }
        if name not in AGENT_HOSTS:
            return Caller(**caller)
        epoch = _epoch(headers.get("writ-epoch", ""), required=method == "CallTool")
        return Caller(
            **caller,
            epoch=epoch,
            agent=await self._agent(headers, Caller(**caller)) if needs_agent else None,
        )

    async def _agent(self, headers: Mapping[str, str], caller: Caller) -> Any:
        token = headers.get("writ-agent-token", "")
        if not token:
            raise unauthenticated("TOKEN_MISSING", f"{caller.service} requires an agent token for this RPC.")
        shown = await verify(self._ring, "agent", token, ("supervisor",), claims_pb.AgentClaims())
        if time.time() >= shown.expires_at + SKEW_S:
            raise unauthenticated("TOKEN_EXPIRED", "The agent token has expired.")
        caller.assert_serves(shown.claims.tenant)
        return shown.claims


def validate(request: Any) -> None:
    """Validates a request against the contract; reports the first invalid field."""
    for violation in protovalidate.collect_violations(request)[:1]:
        path = violation.proto.field
        field = ".".join(element.field_name for element in path.elements) if path else ""
        raise invalid("INVALID_FIELD", f"{field}: {violation.proto.message}.", field)


def _epoch(text: str, *, required: bool) -> int:
    if not text and not required:
        return 0
    if not re.fullmatch(r"0|[1-9]\d{0,17}", text):
        raise invalid("EPOCH_MISSING", "The header writ-epoch must be the lease epoch.", "writ-epoch")
    return int(text)
