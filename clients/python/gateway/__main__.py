"""`python -m gateway`: reads settings from the environment and serves until SIGTERM."""

import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from writ.identity.v1 import key_service_pb2 as keys_pb
from writ.identity.v1.key_service_pb2_grpc import add_KeyServiceServicer_to_server
from writ.tool.v1 import tool_gateway_service_pb2 as gateway_pb
from writ.tool.v1.tool_gateway_service_pb2_grpc import add_ToolGatewayServiceServicer_to_server

from .access import Gate
from .calls import Calls
from .outcomes import Outcomes
from .registry import load_registry
from .reports import deliver_reports
from .service import Gateway, Keys
from .sources import OpenSource
from .store import Store
from .tokens import KeyRing, SigningKey

GRACE_S = 5.0
DEFAULTS = {
    "supervisor": "127.0.0.1:50051",
    "agent-worker": "127.0.0.1:50055",
    "agent-proxy": "127.0.0.1:50056",
}


def setting(name: str, default: str) -> str:
    """Returns a setting, or its default if it is unset or empty."""
    return os.environ.get(name) or default


def address_of(service: str) -> str:
    """The address of a service: from the trust file of an embedded platform, or from a setting."""
    if trust_file := os.environ.get("WRIT_TRUST_FILE"):
        try:
            return str(json.loads(Path(trust_file).read_text())[service])
        except (OSError, ValueError, KeyError) as error:
            raise LookupError(f"{trust_file} has no address of {service}") from error
    name = f"WRIT_{service.upper().replace('-', '_')}_ADDRESS"
    return setting(name, DEFAULTS[service])


async def main() -> None:
    """Opens the store, keys, tools and the listener, and serves."""
    folder = Path(setting("WRIT_DATA", ".writ"))
    registry = load_registry(Path(setting("WRIT_TOOLS_FILE", "examples/refund-desk/tools.yaml")))
    key = SigningKey(folder / "keys")
    store = Store(folder / "python-gateway.db")
    ring = KeyRing(address_of)
    sources = {name: OpenSource(source, key) for name, source in registry.sources.items()}
    outcomes = Outcomes(store, key)
    calls = Calls(registry, store, outcomes, ring, sources)

    # Clients send keepalive pings every two seconds.
    pings = ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000)
    server = grpc.aio.server(options=[pings])
    gateway = Gateway(Gate(ring), registry, store, outcomes, calls)
    add_ToolGatewayServiceServicer_to_server(gateway, server)
    add_KeyServiceServicer_to_server(Keys(key), server)
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    services = (
        gateway_pb.DESCRIPTOR.services_by_name["ToolGatewayService"].full_name,
        keys_pb.DESCRIPTOR.services_by_name["KeyService"].full_name,
    )
    names = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    host = setting("WRIT_TOOL_GATEWAY_HOST", "127.0.0.1")
    port = server.add_insecure_port(f"{host}:{setting('WRIT_TOOL_GATEWAY_PORT', '50054')}")
    await server.start()
    for name in ("", *services):
        await healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    print(f"python tool gateway listens on {host}:{port}", flush=True)

    delay_s = int(setting("WRIT_RECEIPT_DELAY_MS", "2000")) / 1000
    reports = asyncio.create_task(deliver_reports(store, key, address_of, delay_s))
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    await stopped.wait()
    await healthy.enter_graceful_shutdown()
    await server.stop(GRACE_S)
    reports.cancel()
    for source in sources.values():
        await source.close()
    store.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main())
