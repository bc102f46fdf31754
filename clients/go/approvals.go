package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	approvalv1 "writ.example/caller/gen/writ/approval/v1"
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
		fmt.Fprintf(out, "%s %s %s\n", asked.GetApprovalId(), asked.GetAction().GetTool().GetTool(),
			asked.GetAction().GetTool().GetArgumentsJson())
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
	approvals, channel, err := openApprovals()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	request := &approvalv1.DecideApprovalRequest{
		RequestId:  newRequestID(),
		ApprovalId: given[0],
		Answer:     &approvalv1.DecideApprovalRequest_Approve{Approve: &approvalv1.Approve{}},
		Comment:    *comment,
	}
	if *edit != "" {
		read, err := approvals.GetApproval(ctx, &approvalv1.GetApprovalRequest{ApprovalId: given[0]})
		if err != nil {
			return err
		}
		edited, err := withEdits(read.GetApproval().GetAction().GetTool().GetArgumentsJson(), *edit)
		if err != nil {
			return err
		}
		request.Answer = &approvalv1.DecideApprovalRequest_ApproveWithEdits{
			ApproveWithEdits: &approvalv1.ApproveWithEdits{ArgumentsJson: edited},
		}
	}
	answer, err := approvals.DecideApproval(ctx, request)
	if err != nil {
		return err
	}
	if proposed := answer.GetProposedArgumentsJson(); proposed != "" {
		return fmt.Errorf("a rule would change these arguments; it accepts %s", proposed)
	}
	decided := answer.GetApproval()
	fmt.Fprintln(out, decided.GetState(), decided.GetExecutedAction().GetTool().GetArgumentsJson())
	return nil
}

// withEdits replaces some arguments of a JSON object. Other arguments keep their text:
// numbers are not converted to floating point.
func withEdits(arguments, edits string) (string, error) {
	var proposed, changed map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &proposed); err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(edits), &changed); err != nil {
		return "", &usageError{"-edit is not a JSON object"}
	}
	maps.Copy(proposed, changed)
	var edited bytes.Buffer
	encoder := json.NewEncoder(&edited)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(proposed)
	return edited.String(), err
}
