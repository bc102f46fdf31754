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

const (
	// Pause before a broken watch is resumed.
	pause = 500 * time.Millisecond
	// Time without a message after which a watch is considered broken; the supervisor sends a heartbeat after five seconds
	// without an event.
	silence = 15 * time.Second
)

// watchRun follows a run to its end. A broken or silent watch is resumed after the last event,
// so that no event is missed or repeated.
func watchRun(ctx context.Context, args []string, out io.Writer) error {
	given, err := parse(newFlags(), args, "RUN")
	if err != nil {
		return err
	}
	runs, channel, err := openRuns()
	if err != nil {
		return err
	}
	defer channel.Close()
	for after := int64(0); ; {
		result, err := follow(ctx, runs, given[0], &after, out)
		switch {
		case result != nil:
			return ending(result, out)
		case err == nil || errors.Is(err, io.EOF) || errors.Is(err, errSilent) || status.Code(err) == codes.Unavailable:
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

// errSilent reports that neither an event nor a heartbeat was received in time, for example because the supervisor is
// paused.
var errSilent = errors.New("the watch was silent")

// follow prints the events after a position and advances the position. It returns the result of the run when the last
// event arrives.
func follow(
	ctx context.Context, runs runv1.RunServiceClient, run string, after *int64, out io.Writer,
) (*runv1.RunResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer alarm.Stop()
	events, err := runs.WatchRun(ctx, &runv1.WatchRunRequest{RunId: run, AfterSequence: *after})
	for err == nil {
		var answer *runv1.WatchRunResponse
		if answer, err = events.Recv(); err != nil {
			break
		}
		alarm.Reset(silence)
		event := answer.GetEvent()
		if event.GetHeartbeat() != nil {
			continue
		}
		*after = event.GetSequence()
		if result := event.GetResult(); result != nil {
			return result, nil
		}
		fmt.Fprintln(out, line(event))
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	return nil, err
}

// line formats an event: position, type and subject.
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

// about returns a short name of an action.
func about(action *reviewv1.Action) string {
	switch kind := action.GetKind().(type) {
	case *reviewv1.Action_Tool:
		return kind.Tool.GetTool()
	case *reviewv1.Action_ClientTool:
		return kind.ClientTool.GetTool()
	case *reviewv1.Action_Delegation:
		return kind.Delegation.GetAgent()
	case *reviewv1.Action_Final:
		return "final"
	default:
		return "nothing"
	}
}

// ending prints how a run ended. An exhausted budget is an error, like a rejected call.
func ending(result *runv1.RunResult, out io.Writer) error {
	fmt.Fprintln(out, result.GetStatus(), result.GetStopReason())
	if result.GetAnswer() != "" {
		fmt.Fprintln(out, result.GetAnswer())
	}
	return spentBudget(result.GetStopReason())
}
