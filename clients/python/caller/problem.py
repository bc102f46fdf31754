"""Errors, identified by the reason in ErrorInfo instead of the message text."""

from dataclasses import dataclass

import grpc
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "writ"
DETAILS_HEADER = "grpc-status-details-bin"


class MisuseError(Exception):
    """Raised for an invalid command line or environment.

    Also raised for a command that the state of the run or approval does not permit."""


class BudgetSpentError(Exception):
    """Raised for a run that ended because a budget was exhausted."""


@dataclass(frozen=True)
class Problem:
    """An error: its stable reason, empty if Writ did not return the error, and a message for people."""

    reason: str
    sentence: str


def explain(error: grpc.RpcError) -> Problem:
    """Returns the reason of an error from its ErrorInfo, and a message for people."""
    message = error.details() or error.code().name
    info = info_of(error)
    if info is None:
        return Problem("", message)
    if info.reason == "BUDGET_EXHAUSTED":
        cap = info.metadata
        return Problem(
            info.reason, f"budget exhausted: {cap['dimension']}, {cap['used']} of {cap['limit']}"
        )
    return Problem(info.reason, f"{info.reason}: {message}")


def info_of(error: grpc.RpcError) -> error_details_pb2.ErrorInfo | None:
    """The ErrorInfo of Writ's domain, or None."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_HEADER:
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return info
    return None


def check_spent(stop_reason: str) -> None:
    """Raises BudgetSpentError for a stop reason that names an exhausted budget."""
    kind, _, dimension = stop_reason.partition(":")
    if kind == "budget_exhausted":
        raise BudgetSpentError(f"budget exhausted: {dimension}")
