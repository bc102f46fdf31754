"""ToolGatewayService and KeyService: translate requests and responses."""

import json
from typing import Any, TypeAlias

import grpc
from writ.identity.v1 import key_service_pb2 as keys_pb
from writ.identity.v1.key_service_pb2_grpc import KeyServiceServicer
from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb
from writ.tool.v1 import tool_pb2 as tool_pb
from writ.tool.v1.tool_gateway_service_pb2_grpc import ToolGatewayServiceServicer

from .access import Caller, Gate
from .calls import Calls
from .errors import Code, GatewayError, denied, invalid
from .freezes import freeze, unfreeze
from .outcomes import Outcomes, timestamp
from .registry import Registry, Tool
from .resolve import resolve_outcome, void_writ
from .store import CallKey, Store
from .tokens import SELF, SigningKey
from .writs import key_of

Context: TypeAlias = grpc.aio.ServicerContext
DEFAULT_PAGE = 200
SIDE_EFFECTS = {
    "read_only": tool_pb.SIDE_EFFECT_READ_ONLY,
    "idempotent": tool_pb.SIDE_EFFECT_IDEMPOTENT,
    "destructive": tool_pb.SIDE_EFFECT_DESTRUCTIVE,
}


class Keys(KeyServiceServicer):
    """Publishes the gateway's key without authentication."""

    def __init__(self, key: SigningKey) -> None:
        """`key` is the signing key."""
        self._key = key

    async def GetKeys(self, request: keys_pb.GetKeysRequest, context: Context) -> keys_pb.GetKeysResponse:
        """All keys, or the requested one."""
        own = keys_pb.PublicKey(
            key_id=self._key.key_id,
            jwk_json=json.dumps(self._key.jwk),
            not_before=timestamp(self._key.since),
        )
        keys = [own] if request.key_id in ("", own.key_id) else []
        return keys_pb.GetKeysResponse(service=SELF, keys=keys)


class Gateway(ToolGatewayServiceServicer):
    """The RPCs of a tool gateway."""

    def __init__(
        self, gate: Gate, registry: Registry, store: Store, outcomes: Outcomes, calls: Calls
    ) -> None:
        """The components that handle requests."""
        self._gate = gate
        self._registry = registry
        self._store = store
        self._outcomes = outcomes
        self._calls = calls

    async def ListTools(
        self, request: gateway_pb.ListToolsRequest, context: Context
    ) -> gateway_pb.ListToolsResponse:
        """Returns all tools to the supervisor; to agent-worker and agent-proxy, the agent's tools
        (TG-6)."""
        return await self._gate.answer("ListTools", request, context, self._list_tools)

    async def CallTool(
        self, request: gateway_pb.CallToolRequest, context: Context
    ) -> gateway_pb.CallToolResponse:
        """Executes one action under a writ for exactly this action (TG-1)."""
        return await self._gate.answer("CallTool", request, context, self._calls.call_tool)

    async def GetReceipt(
        self, request: gateway_pb.GetReceiptRequest, context: Context
    ) -> gateway_pb.GetReceiptResponse:
        """Returns a receipt to the supervisor and to the agent of the call (TG-8)."""
        return await self._gate.answer("GetReceipt", request, context, self._get_receipt)

    async def VoidWrit(
        self, request: gateway_pb.VoidWritRequest, context: Context
    ) -> gateway_pb.VoidWritResponse:
        """Voids a writ whose call will not be retried (TG-8)."""

        async def handle(request: Any, _: Caller) -> gateway_pb.VoidWritResponse:
            key = key_of(request.call)
            version = self._registry.version
            return void_writ(self._store, self._outcomes, self._calls, key, version)

        return await self._gate.answer("VoidWrit", request, context, handle)

    async def ResolveOutcome(
        self, request: gateway_pb.ResolveOutcomeRequest, context: Context
    ) -> gateway_pb.ResolveOutcomeResponse:
        """Records an operator's resolution of an unknown outcome (TG-5)."""

        async def handle(request: Any, _: Caller) -> gateway_pb.ResolveOutcomeResponse:
            return resolve_outcome(self._store, self._outcomes, request)

        return await self._gate.answer("ResolveOutcome", request, context, handle)

    async def Freeze(self, request: gateway_pb.FreezeRequest, context: Context) -> gateway_pb.FreezeResponse:
        """Freezes a scope (SV-9)."""

        async def handle(request: Any, _: Caller) -> gateway_pb.FreezeResponse:
            return await freeze(self._store, self._calls, request.order)

        return await self._gate.answer("Freeze", request, context, handle)

    async def Unfreeze(
        self, request: gateway_pb.UnfreezeRequest, context: Context
    ) -> gateway_pb.UnfreezeResponse:
        """Lifts one order (SV-9)."""

        async def handle(request: Any, _: Caller) -> gateway_pb.UnfreezeResponse:
            return unfreeze(self._store, request.order_id)

        return await self._gate.answer("Unfreeze", request, context, handle)

    async def _list_tools(
        self, request: gateway_pb.ListToolsRequest, caller: Caller
    ) -> gateway_pb.ListToolsResponse:
        own = caller.agent
        if request.admit_epoch and own is not None:
            key = CallKey(own.tenant, own.run_id, own.agent.instance, "")
            self._calls.admit_worker(key, caller.epoch)
        version, after = self._registry.version, request.page_token
        if request.known_version == version:
            return gateway_pb.ListToolsResponse(registry_version=version, unchanged=True)
        if after and after not in self._registry.tools:
            raise invalid("INVALID_PAGE_TOKEN", "page_token is invalid.", "page_token")
        wanted = [
            tool
            for name, tool in self._registry.tools.items()
            if name > after
            and (not request.names or name in request.names)
            and (own is None or name in own.tools)
        ]
        page = wanted[: request.page_size or DEFAULT_PAGE]
        return gateway_pb.ListToolsResponse(
            tools=[_definition(tool) for tool in page],
            registry_version=version,
            next_page_token=page[-1].name if len(page) < len(wanted) else "",
        )

    async def _get_receipt(
        self, request: gateway_pb.GetReceiptRequest, caller: Caller
    ) -> gateway_pb.GetReceiptResponse:
        key, agent = key_of(request.call), caller.agent
        if agent is not None:
            own = (agent.tenant, agent.run_id, agent.agent.instance)
            if own != (key.tenant, key.run_id, key.agent_instance):
                message = f"Agent {agent.agent.instance} may only read receipts of its own calls."
                raise denied("CALL_WRONG_OWNER", message, field="call")
        call = self._store.find_call(key)
        if call is None or not call.receipt:
            message = f"This agent has no call {key.call_id} with an outcome."
            raise GatewayError(Code.NOT_FOUND, "RECEIPT_NOT_FOUND", message, call_id=key.call_id)
        return gateway_pb.GetReceiptResponse(receipt=call.receipt)


def _definition(tool: Tool) -> tool_pb.ToolDefinition:
    definition = tool_pb.ToolDefinition(
        name=tool.name,
        description=tool.description,
        input_schema_json=json.dumps(tool.schema),
        side_effect=SIDE_EFFECTS[tool.side_effect],
        max_output_bytes=tool.max_output_bytes,
        max_calls_per_agent=tool.max_calls_per_agent,
        max_repeats=tool.max_repeats,
        risk=tool.risk,
        source=tool.source,
        definition_digest=tool.digest,
    )
    definition.timeout.FromMilliseconds(round(tool.timeout_s * 1000))
    return definition
