"""Listing and answering approvals."""

import json
from argparse import Namespace

from writ.approval.v1 import approval_pb2 as approval_pb
from writ.approval.v1 import approval_service_pb2 as pb
from writ.approval.v1.approval_service_pb2_grpc import ApprovalServiceStub
from writ.review.v1.action_pb2 import Action, ClientToolAction, ToolAction

from .channel import TIMEOUT_S, new_request_id, public_channel
from .problem import MisuseError


def list_pending(given: Namespace) -> None:
    """Prints the open approvals of a run."""
    request = pb.ListApprovalsRequest(run_id=given.run_id, states=[approval_pb.APPROVAL_STATE_PENDING])
    with public_channel() as channel:
        for asked in ApprovalServiceStub(channel).ListApprovals(request, timeout=TIMEOUT_S).approvals:
            call = call_of(asked.action)
            print(asked.approval_id, call.tool, call.arguments_json)


def approve(given: Namespace) -> None:
    """Approves an action, as proposed or with edited arguments."""
    request = pb.DecideApprovalRequest(
        request_id=new_request_id(), approval_id=given.approval, comment=given.comment, approve=pb.Approve()
    )
    if given.edit:
        check_object(given.edit)
        request.approve_with_edits.changes_json = given.edit
    with public_channel() as channel:
        answer = ApprovalServiceStub(channel).DecideApproval(request, timeout=TIMEOUT_S)
    if answer.proposed_arguments_json:
        raise MisuseError(
            f"a rule would change these arguments; it accepts {answer.proposed_arguments_json}"
        )
    decided = answer.approval
    print(
        approval_pb.ApprovalState.Name(decided.state), call_of(decided.executed_action).arguments_json
    )


def call_of(action: Action) -> ToolAction | ClientToolAction:
    """Returns the tool call of an action; the program of an external agent executes a client tool itself.

    The call is empty for a delegation and for a final answer."""
    return action.client_tool if action.WhichOneof("kind") == "client_tool" else action.tool


def check_object(edits: str) -> None:
    """Raises MisuseError unless the text is a JSON object."""
    try:
        changed = json.loads(edits)
    except ValueError:
        changed = None
    if not isinstance(changed, dict):
        raise MisuseError("--edit is not a JSON object")
