package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	approvalv1 "writ.example/caller/gen/writ/approval/v1"
	reviewv1 "writ.example/caller/gen/writ/review/v1"
)

func openApprovals() (approvalv1.ApprovalServiceClient, io.Closer, error) {
	channel, err := openChannel()
	if err != nil {
		return nil, nil, err
	}
	return approvalv1.NewApprovalServiceClient(channel), channel, nil
}

func listApprovals(ctx context.Context, args []string, out io.Writer) error {
	given, err := parse(newFlags(), args, "RUN")
	if err != nil {
		return err
	}
	approvals, channel, err := openApprovals()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := approvals.ListApprovals(ctx, &approvalv1.ListApprovalsRequest{
		RunId:  given[0],
		States: []approvalv1.ApprovalState{approvalv1.ApprovalState_APPROVAL_STATE_PENDING},
	})
	if err != nil {
		return err
	}
	for _, asked := range answer.GetApprovals() {
		call := callOf(asked.GetAction())
		fmt.Fprintf(out, "%s %s %s\n", asked.GetApprovalId(), call.GetTool(), call.GetArgumentsJson())
	}
	return nil
}

func approve(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags()
	edit := flags.String("edit", "", "arguments with new values, as a JSON object")
	comment := flags.String("comment", "", "reason, for the audit record")
	given, err := parse(flags, args, "APPROVAL")
	if err != nil {
		return err
	}
	request := &approvalv1.DecideApprovalRequest{
		RequestId:  newRequestID(),
		ApprovalId: given[0],
		Answer:     &approvalv1.DecideApprovalRequest_Approve{Approve: &approvalv1.Approve{}},
		Comment:    *comment,
	}
	if *edit != "" {
		var changed map[string]json.RawMessage
		if err := json.Unmarshal([]byte(*edit), &changed); err != nil {
			return &usageError{"-edit is not a JSON object"}
		}
		request.Answer = &approvalv1.DecideApprovalRequest_ApproveWithEdits{
			ApproveWithEdits: &approvalv1.ApproveWithEdits{ChangesJson: *edit},
		}
	}
	approvals, channel, err := openApprovals()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := approvals.DecideApproval(ctx, request)
	if err != nil {
		return err
	}
	if proposed := answer.GetProposedArgumentsJson(); proposed != "" {
		return fmt.Errorf("a rule would change these arguments; it accepts %s", proposed)
	}
	decided := answer.GetApproval()
	fmt.Fprintln(out, decided.GetState(), callOf(decided.GetExecutedAction()).GetArgumentsJson())
	return nil
}

// toolCall is a call of a tool; the program of an external agent executes a client tool itself.
type toolCall interface {
	GetTool() string
	GetArgumentsJson() string
}

// callOf returns the tool call of an action. The call is empty for a delegation and for a final answer.
func callOf(action *reviewv1.Action) toolCall {
	if call := action.GetClientTool(); call != nil {
		return call
	}
	return action.GetTool()
}
