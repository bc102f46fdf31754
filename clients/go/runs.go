package main

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	runv1 "writ.example/caller/gen/writ/run/v1"
	supervisionv1 "writ.example/caller/gen/writ/supervision/v1"
)

// openRuns returns a client of RunService and its channel, which the caller closes.
func openRuns() (runv1.RunServiceClient, io.Closer, error) {
	channel, err := openChannel()
	if err != nil {
		return nil, nil, err
	}
	return runv1.NewRunServiceClient(channel), channel, nil
}

func listAgents(ctx context.Context, args []string, out io.Writer) error {
	if _, err := parse(newFlags(), args); err != nil {
		return err
	}
	runs, channel, err := openRuns()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := runs.ListAgents(ctx, &runv1.ListAgentsRequest{})
	if err != nil {
		return err
	}
	for _, agent := range answer.GetAgents() {
		fmt.Fprintf(out, "%s: %s\n", agent.GetName(), agent.GetDescription())
	}
	return nil
}

func startRun(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags()
	model := flags.String("model", "", "the model to use instead of the agent's own")
	maxTokens := flags.Int64("max-tokens", -1, "largest number of tokens of the whole run")
	given, err := parse(flags, args, "AGENT", "GOAL")
	if err != nil {
		return err
	}
	request := &runv1.StartRunRequest{
		RequestId: newRequestID(),
		Agent:     given[0],
		Goal:      given[1],
		Model:     *model,
	}
	// An unset limit means unlimited; zero means zero.
	if *maxTokens >= 0 {
		request.RunBudget = &supervisionv1.ExecutionBudget{MaxTokens: proto.Int64(*maxTokens)}
	}
	runs, channel, err := openRuns()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := runs.StartRun(ctx, request)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.GetRun().GetRunId())
	return nil
}

func printUsage(ctx context.Context, args []string, out io.Writer) error {
	given, err := parse(newFlags(), args, "RUN")
	if err != nil {
		return err
	}
	runs, channel, err := openRuns()
	if err != nil {
		return err
	}
	defer channel.Close()
	run, err := readRun(ctx, runs, given[0])
	if err != nil {
		return err
	}
	if run.GetResult() == nil {
		return fmt.Errorf("run %s has not ended; its usage is available at its end", run.GetRunId())
	}
	spent := run.GetResult().GetUsage()
	fmt.Fprintf(out, "input_tokens=%d output_tokens=%d turns=%d cost_usd=%.9f\n",
		spent.GetUsage().GetInputTokens(), spent.GetUsage().GetOutputTokens(),
		spent.GetTurns(), float64(spent.GetCostNanoUsd())/1e9)
	return nil
}

func cancelRun(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags()
	reason := flags.String("reason", "", "reason, for the audit record")
	given, err := parse(flags, args, "RUN")
	if err != nil {
		return err
	}
	runs, channel, err := openRuns()
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := runs.CancelRun(ctx, &runv1.CancelRunRequest{
		RequestId: newRequestID(),
		RunId:     given[0],
		Reason:    *reason,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.GetRun().GetState())
	return nil
}

func readRun(ctx context.Context, runs runv1.RunServiceClient, id string) (*runv1.Run, error) {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := runs.GetRun(ctx, &runv1.GetRunRequest{RunId: id})
	return answer.GetRun(), err
}
