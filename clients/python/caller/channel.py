"""gRPC channels: address, credentials and retries."""

import json
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from .problem import MisuseError

#: Timeout of unary calls, in seconds.
TIMEOUT_S = 15.0

# Every call may be retried when the server is unavailable: calls that modify state carry a request_id,
# with which the server detects repeats.
RETRIES = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.2s",
                    "maxBackoff": "3s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)


def required(name: str) -> str:
    """Returns a required setting. Raises MisuseError if it is unset or empty."""
    value = os.environ.get(name)
    if not value:
        raise MisuseError(f"{name} is not set")
    return value


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Adds a key or token to every call."""

    def __init__(self, token: str) -> None:
        """Stores the token."""
        self._header = ("authorization", f"Bearer {token}")

    def _identified(self, proceed: Callable[..., Any], details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or ()), self._header]
        return proceed(details._replace(metadata=metadata), request)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Adds the key or token to a unary call."""
        return self._identified(continuation, client_call_details, request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Adds the key or token to a server-streaming call."""
        return self._identified(continuation, client_call_details, request)


def public_channel() -> grpc.Channel:
    """A channel to the public services, at WRIT_ADDRESS; over TLS with WRIT_CA_FILE."""
    token = required("WRIT_API_KEY")
    authorities = pem_in("WRIT_CA_FILE")
    trust = grpc.ssl_channel_credentials(authorities) if authorities else None
    return dial("WRIT_ADDRESS", "127.0.0.1:8080", token, trust)


def service_channel(service: str, variable: str, fallback: str) -> grpc.Channel:
    """A channel to an internal service, authenticated by WRIT_SERVICE_TOKEN.

    With mutual TLS the channel presents WRIT_TLS_CERT_FILE, and accepts only a certificate for the host name
    of the service that is signed by a CA in WRIT_TLS_CA_FILE.
    """
    token = required("WRIT_SERVICE_TOKEN")
    authorities = pem_in("WRIT_TLS_CA_FILE")
    if authorities is None:
        return dial(variable, fallback, token, None)
    trust = grpc.ssl_channel_credentials(
        authorities, pem_in("WRIT_TLS_KEY_FILE"), pem_in("WRIT_TLS_CERT_FILE")
    )
    return dial(variable, fallback, token, trust, [("grpc.ssl_target_name_override", service)])


def pem_in(name: str) -> bytes | None:
    """The contents of the file that a setting names; None when the setting is empty."""
    file = os.environ.get(name)
    if not file:
        return None
    try:
        pem = Path(file).read_bytes()
    except OSError as error:
        raise MisuseError(f"{name}: {file}: {error.strerror}") from error
    if b"-----BEGIN" not in pem:
        raise MisuseError(f"{name}: {file} contains no PEM data")
    return pem


def dial(
    variable: str,
    fallback: str,
    token: str,
    trust: grpc.ChannelCredentials | None,
    options: Sequence[tuple[str, str]] = (),
) -> grpc.Channel:
    """A channel that sends a token; in cleartext without CA certificates."""
    address = os.environ.get(variable) or fallback
    options = [("grpc.service_config", RETRIES), *options]
    if trust is None:
        channel = grpc.insecure_channel(address, options)
    else:
        channel = grpc.secure_channel(address, trust, options)
    return grpc.intercept_channel(channel, Bearer(token))


def new_request_id() -> str:
    """A request id, which makes retries idempotent."""
    return f"req_{uuid.uuid4().hex}"
