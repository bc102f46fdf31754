package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	reviewv1 "writ.example/caller/gen/writ/review/v1"
	runv1 "writ.example/caller/gen/writ/run/v1"
)

// How long to wait before a watch that broke off is taken up again.
const pause = 500 * time.Millisecond

// watchRun follows a run to its end. A watch that breaks off goes on after the last event that was
// seen, so that none is missed and none is told twice.
func watchRun(ctx context.Context, args []string, out io.Writer) error {
	given, err := parse(newFlags(), args, "RUN")
	if err != nil {
		return err
	}
	runs, door, err := openRuns()
	if err != nil {
		return err
	}
	defer door.Close()
	for after := int64(0); ; {
		result, err := follow(ctx, runs, given[0], &after, out)
		switch {
		case result != nil:
			return ending(result, out)
		case err == nil || errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		default:
			return err
		}
	}
}

// follow prints events after the place given and moves it along; it returns the result with the last one.
func follow(
	ctx context.Context, runs runv1.RunServiceClient, run string, after *int64, out io.Writer,
) (*runv1.RunResult, error) {
	events, err := runs.WatchRun(ctx, &runv1.WatchRunRequest{RunId: run, AfterSequence: *after})
	if err != nil {
		return nil, err
	}
	for {
		answer, err := events.Recv()
		if err != nil {
			return nil, err
		}
		event := answer.GetEvent()
		*after = event.GetSequence()
		if result := event.GetResult(); result != nil {
			return result, nil
		}
		fmt.Fprintln(out, line(event))
	}
}

// line tells an event: its place, what it is, and what it is about.
func line(event *runv1.RunEvent) string {
	switch entry := event.GetEntry().(type) {
	case *runv1.RunEvent_Decision:
		decided := entry.Decision
		return fmt.Sprintf("%d %s %s %s", event.GetSequence(), decided.GetVerdict(), about(decided.GetAction()),
			decided.GetReason())
	case *runv1.RunEvent_Hook:
		return fmt.Sprintf("%d %s %s", event.GetSequence(), entry.Hook.GetType(), entry.Hook.GetToolName())
	default:
		return fmt.Sprintf("%d", event.GetSequence())
	}
}

// about names an action in a word.
func about(action *reviewv1.Action) string {
	switch kind := action.GetKind().(type) {
	case *reviewv1.Action_Tool:
		return kind.Tool.GetTool()
	case *reviewv1.Action_Delegation:
		return kind.Delegation.GetAgent()
	case *reviewv1.Action_Final:
		return "final"
	default:
		return "nothing"
	}
}

// ending prints how a run ended. One whose budget was spent is an error, as a refused call would be.
func ending(result *runv1.RunResult, out io.Writer) error {
	fmt.Fprintln(out, result.GetStatus(), result.GetStopReason())
	if result.GetAnswer() != "" {
		fmt.Fprintln(out, result.GetAnswer())
	}
	return spentBudget(result.GetStopReason())
}
