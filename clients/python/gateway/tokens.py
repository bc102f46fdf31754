"""Tokens: JWS of fixed form, signed with Ed25519 (TG-1, TG-8)."""

import asyncio
import base64
import json
import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from writ.identity.v1 import claims_pb2 as claims_pb
from writ.identity.v1 import key_service_pb2 as keys_pb
from writ.identity.v1.key_service_pb2_grpc import KeyServiceStub

from .errors import Code, GatewayError, unauthenticated
from .strict_json import sha256_hex

SELF = "tool-gateway"
ID = re.compile(r"[a-z0-9_-]{1,64}")
RECEIPT_LIFE_S = 30 * 24 * 3600
SERVICE_LIFE_S = 600


def clock_leeway_s(text: str) -> float:
    """The tolerated difference between clocks, from a duration such as `60s`. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", text)
    if found is None:
        raise ValueError(f"WRIT_CLOCK_LEEWAY must be a duration such as 60s, not {text!r}")
    return float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[found[2]]


#: Tolerated difference from the clocks of other services. It does not extend the expiry of a writ.
SKEW_S = clock_leeway_s(os.environ.get("WRIT_CLOCK_LEEWAY") or "60s")
FETCH_EVERY_S = 1.0
KEYS_USABLE_S = 3600.0
_REGISTERED = {"iss", "aud", "sub", "iat", "nbf", "exp", "jti"}

M = TypeVar("M", bound=Message)


def encode(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decodes base64url. Raises ValueError if the text is not in canonical form."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(data) != text:
        raise ValueError("not canonical")
    return data


class SigningKey:
    """The gateway's own key, kept in `<data>/keys/python-gateway.key` (mode 0600)."""

    def __init__(self, folder: Path) -> None:
        """Opens the key and creates it on the first start."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "python-gateway.key"
        if not file.exists():
            made = folder / f".{secrets.token_hex(8)}"
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(Ed25519PrivateKey.generate().private_bytes_raw())
                out.flush()
                os.fsync(out.fileno())
            made.rename(file)
        self._private = Ed25519PrivateKey.from_private_bytes(file.read_bytes())
        self.since = file.stat().st_mtime
        x = encode(self._private.public_key().public_bytes_raw())
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": x}
        # RFC 7638.
        self.key_id = key_id_of(x)

    def sign(self, kind: str, audience: str, subject: str, claims: Message, life_s: float) -> str:
        """A token of `kind`, issued now."""
        now = time.time()
        header = {"alg": "EdDSA", "typ": f"{kind}+jwt", "kid": self.key_id}
        payload = {
            "iss": SELF,
            "aud": audience,
            "sub": subject,
            "iat": now,
            "exp": now + life_s,
            "jti": f"{kind[:4]}_{secrets.token_hex(12)}",
            kind: MessageToDict(claims, preserving_proto_field_name=True),
        }
        signed = ".".join(encode(json.dumps(part).encode()) for part in (header, payload))
        return f"{signed}.{encode(self._private.sign(signed.encode()))}"

    def service_token(self, audience: str) -> str:
        """A service token for another service."""
        claims = claims_pb.ServiceClaims(name=SELF, replica="python-gateway")
        return self.sign("service", audience, SELF, claims, SERVICE_LIFE_S)


def key_id_of(x: str) -> str:
    """The RFC 7638 thumbprint of an Ed25519 key."""
    return encode(bytes.fromhex(sha256_hex(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}')))


class KeyRing:
    """Public keys of trusted services, fetched with GetKeys for an unknown key id and after an hour."""

    def __init__(self, address_of: Callable[[str], str]) -> None:
        """`address_of` gives host:port of a service, or raises LookupError."""
        self._address_of = address_of
        self._keys: dict[str, dict[str, tuple[Ed25519PublicKey, float]]] = {}
        self._fetched_at: dict[str, float] = {}
        self._tried_at: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def find(self, issuer: str, key_id: str) -> Ed25519PublicKey | None:
        """Returns the key, or None if it is unknown or has expired.

        Raises UNAVAILABLE if a needed fetch fails or follows the previous fetch within a second (SYS-4)."""
        async with self._locks[issuer]:
            now = time.monotonic()
            fresh = now - self._fetched_at.get(issuer, -KEYS_USABLE_S) < KEYS_USABLE_S
            if not fresh or key_id not in self._keys[issuer]:
                if now - self._tried_at.get(issuer, -FETCH_EVERY_S) < FETCH_EVERY_S:
                    raise _keys_unavailable(issuer)
                self._tried_at[issuer] = now
                self._keys[issuer] = await self._fetch(issuer)
                self._fetched_at[issuer] = now
            key, not_after = self._keys[issuer].get(key_id, (None, 0.0))
            return key if time.time() < not_after else None

    async def _fetch(self, issuer: str) -> dict[str, tuple[Ed25519PublicKey, float]]:
        try:
            async with grpc.aio.insecure_channel(self._address_of(issuer)) as channel:
                answer = await KeyServiceStub(channel).GetKeys(keys_pb.GetKeysRequest(), timeout=3)
        except (grpc.RpcError, LookupError) as error:
            raise _keys_unavailable(issuer) from error
        if answer.service != issuer:
            raise _keys_unavailable(issuer)
        found = {}
        for key in answer.keys:
            x = json.loads(key.jwk_json)["x"]
            if key_id_of(x) != key.key_id:
                raise _keys_unavailable(issuer)
            not_after = key.not_after.seconds if key.HasField("not_after") else float("inf")
            found[key.key_id] = (Ed25519PublicKey.from_public_bytes(decode(x)), float(not_after))
        return found


def _keys_unavailable(issuer: str) -> GatewayError:
    return GatewayError(
        Code.UNAVAILABLE,
        "KEYS_UNAVAILABLE",
        f"The keys of {issuer} cannot be fetched now.",
        service=issuer,
    )


@dataclass(frozen=True)
class Verified:
    """A verified token, which may be expired."""

    claims: Any
    id: str
    subject: str
    issuer: str
    expires_at: float


async def verify(ring: KeyRing, kind: str, token: str, issuers: tuple[str, ...], claims: M) -> Verified:
    """Checks form, algorithm, issuer, signature, audience and start of a token for this gateway.

    The caller checks the expiry. An unknown claim is rejected and not ignored, because it may restrict the
    token (SYS-4). Raises UNAUTHENTICATED TOKEN_INVALID or UNAVAILABLE KEYS_UNAVAILABLE.
    """
    try:
        header_text, payload_text, signature_text = token.split(".")
        header, payload = json.loads(decode(header_text)), json.loads(decode(payload_text))
        signature = decode(signature_text)
        if set(header) != {"alg", "kid", "typ"}:
            raise ValueError("its header must have exactly the fields alg, kid and typ")
        if header["alg"] != "EdDSA" or header["typ"] != f"{kind}+jwt":
            raise ValueError(f"it is not a {kind} token")
        issuer = payload["iss"]
        if issuer not in issuers:
            raise ValueError("its issuer may not issue this kind of token")
        key = await ring.find(issuer, header["kid"])
        if key is None:
            raise ValueError("its issuer has no key with the key id of the token")
        key.verify(signature, f"{header_text}.{payload_text}".encode())
        if set(payload) - _REGISTERED - {kind}:
            raise ValueError("it has an unknown claim")
        if payload["aud"] != SELF or not payload["jti"]:
            raise ValueError(f"its audience is not {SELF}, or it has no id")
        times = [payload["iat"], payload.get("nbf", 0), payload["exp"]]
        if not all(type(at) in (int, float) for at in times):
            raise ValueError("its times are malformed")
        if max(times[:2]) > time.time() + SKEW_S:
            raise ValueError("it was issued in the future; compare the clocks")
        ParseDict(payload[kind], claims)
        return Verified(claims, str(payload["jti"]), payload["sub"], issuer, float(times[2]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ParseError) as error:
        raise _invalid(kind, error) from error
    except InvalidSignature as error:
        raise _invalid(kind, ValueError("its signature is invalid")) from error


def _invalid(kind: str, error: Exception) -> GatewayError:
    why = str(error) if type(error) is ValueError else "it is malformed"
    return unauthenticated("TOKEN_INVALID", f"The {kind} token is not valid: {why}.", token=kind)
