"""What went wrong, as programs should read it: by the reason in ErrorInfo, not by the text."""

from dataclasses import dataclass

import grpc
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "writ"
DETAILS_HEADER = "grpc-status-details-bin"


class MisuseError(Exception):
    """A command line or environment that cannot be understood."""


class BudgetSpentError(Exception):
    """A run that ended since a budget of it was spent."""


@dataclass(frozen=True)
class Problem:
    """A refusal: its stable reason, empty when it is not Writ's, and one sentence for a person."""

    reason: str
    sentence: str


def explain(error: grpc.RpcError) -> Problem:
    """Reads the ErrorInfo that Writ gave an error."""
    said = error.details() or error.code().name
    info = info_of(error)
    if info is None:
        return Problem("", said)
    if info.reason == "BUDGET_EXHAUSTED":
        cap = info.metadata
        return Problem(
            info.reason, f"budget exhausted: {cap['dimension']}, {cap['used']} of {cap['limit']}"
        )
    return Problem(info.reason, f"{info.reason}: {said}")


def info_of(error: grpc.RpcError) -> error_details_pb2.ErrorInfo | None:
    """The ErrorInfo of Writ's domain; None when there is none."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_HEADER:
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return info
    return None


def check_spent(stop_reason: str) -> None:
    """Raises when a stop reason says that a budget was spent, and which."""
    kind, _, dimension = stop_reason.partition(":")
    if kind == "budget_exhausted":
        raise BudgetSpentError(f"budget exhausted: {dimension}")
