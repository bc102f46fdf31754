"""Listing and answering approvals."""

import json
from argparse import Namespace

from writ.approval.v1 import approval_pb2 as approval_pb
from writ.approval.v1 import approval_service_pb2 as pb
from writ.approval.v1.approval_service_pb2_grpc import ApprovalServiceStub

from .channel import TIMEOUT_S, new_request_id, public_channel
from .problem import MisuseError


def list_pending(given: Namespace) -> None:
    """Prints the open approvals of a run."""
    request = pb.ListApprovalsRequest(run_id=given.run_id, states=[approval_pb.APPROVAL_STATE_PENDING])
    with public_channel() as channel:
        for asked in ApprovalServiceStub(channel).ListApprovals(request, timeout=TIMEOUT_S).approvals:
            print(asked.approval_id, asked.action.tool.tool, asked.action.tool.arguments_json)


def approve(given: Namespace) -> None:
    """Approves an action, as proposed or with edited arguments."""
    request = pb.DecideApprovalRequest(
        request_id=new_request_id(), approval_id=given.approval, comment=given.comment, approve=pb.Approve()
    )
    with public_channel() as channel:
        approvals = ApprovalServiceStub(channel)
        if given.edit:
            read = approvals.GetApproval(
                pb.GetApprovalRequest(approval_id=given.approval), timeout=TIMEOUT_S
            )
            edited = with_edits(read.approval.action.tool.arguments_json, given.edit)
            request.approve_with_edits.arguments_json = edited
        answer = approvals.DecideApproval(request, timeout=TIMEOUT_S)
    if answer.proposed_arguments_json:
        raise MisuseError(
            f"a rule would change these arguments; it accepts {answer.proposed_arguments_json}"
        )
    decided = answer.approval
    print(
        approval_pb.ApprovalState.Name(decided.state), decided.executed_action.tool.arguments_json
    )


def with_edits(arguments: str, edits: str) -> str:
    """Replaces some arguments of a JSON object."""
    try:
        changed = json.loads(edits)
    except ValueError:
        changed = None
    if not isinstance(changed, dict):
        raise MisuseError("--edit is not a JSON object")
    return json.dumps(json.loads(arguments) | changed, ensure_ascii=False)
