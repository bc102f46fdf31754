"""Delivers receipts and refusals until the supervisor acknowledges them (TG-8)."""

import asyncio
import json
import logging
import time
from collections.abc import Callable

import grpc
from writ.supervision.v1 import supervision_service_pb2 as supervision_pb
from writ.supervision.v1.supervision_service_pb2_grpc import SupervisionServiceStub

from .store import Store
from .strict_json import sha256_hex
from .tokens import SigningKey, decode

BATCH = 128
POLL_S = 1.0
RETRY_MAX_S = 30.0

log = logging.getLogger("gateway")


async def deliver_reports(
    store: Store, key: SigningKey, address_of: Callable[[str], str], delay_s: float
) -> None:
    """Runs until it is cancelled; delivers in batches and retries with back-off after any error, including
    errors of the store: without this task, no receipt would be delivered until the gateway is restarted."""
    wait = poll = min(POLL_S, max(delay_s, 0.02))
    while True:
        await asyncio.sleep(wait)
        try:
            if store.open_reports(time.time() - delay_s, 1):
                async with grpc.aio.insecure_channel(address_of("supervisor")) as channel:
                    stub = SupervisionServiceStub(channel)
                    while await _deliver(store, key, stub, delay_s):
                        pass
            wait = poll
        except Exception as error:
            wait = min(RETRY_MAX_S, max(wait, POLL_S) * 2)
            if isinstance(error, grpc.aio.AioRpcError):
                log.warning("receipts were not delivered: %s %s", error.code().name, error.details())
            else:
                # Logs the stack: the error can be a defect or a damaged row, which a retry does not repair.
                log.warning("receipts were not delivered: %r", error, exc_info=True)


async def _deliver(store: Store, key: SigningKey, stub: SupervisionServiceStub, delay_s: float) -> bool:
    """Delivers one batch; returns whether it was full and completely acknowledged, so that the next one is
    delivered at once."""
    pending = store.open_reports(time.time() - delay_s, BATCH)
    if not pending:
        return False
    receipts = [content.decode() for _, kind, content in pending if kind == "receipt"]
    refusals = [
        supervision_pb.RefusedAttempt.FromString(content) for _, kind, content in pending if kind == "refusal"
    ]
    answer = await stub.ReportReceipts(
        supervision_pb.ReportReceiptsRequest(receipts=receipts, refusals=refusals),
        metadata=(("authorization", f"Bearer {key.service_token('supervisor')}"),),
        timeout=10,
    )
    known = {_id_of(receipt): sha256_hex(receipt) for receipt in receipts}
    acknowledged = [known[jti] for jti in answer.acknowledged_receipt_ids if jti in known]
    acknowledged += answer.acknowledged_refusal_ids
    with store.transaction():
        store.acknowledge(acknowledged)
    # Items without an acknowledgement are delivered again after a pause.
    return len(acknowledged) == BATCH


def _id_of(receipt: str) -> str:
    return str(json.loads(decode(receipt.split(".")[1]))["jti"])
