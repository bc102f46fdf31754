package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	meterv1 "writ.example/caller/gen/writ/meter/v1"
)

// consume books tokens on the tab of a run's first agent. The meter is an internal service: it wants the
// token of a service that may call it, in WRIT_SERVICE_TOKEN, and is where WRIT_EXECUTION_METER_ADDRESS says.
// When a cap is exceeded it answers BUDGET_EXHAUSTED with which, how much, and of how much.
func consume(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags()
	tokens := flags.Int64("tokens", 0, "how many")
	given, err := parse(flags, args, "RUN")
	if err != nil {
		return err
	}
	token := os.Getenv("WRIT_SERVICE_TOKEN")
	if token == "" {
		return errors.New("WRIT_SERVICE_TOKEN is not set")
	}
	runs, door, err := openRuns()
	if err != nil {
		return err
	}
	defer door.Close()
	run, err := readRun(ctx, runs, given[0])
	if err != nil {
		return err
	}
	wire, err := openService("execution-meter", "WRIT_EXECUTION_METER_ADDRESS", "127.0.0.1:50053", token)
	if err != nil {
		return err
	}
	defer wire.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := meterv1.NewExecutionMeterServiceClient(wire).Consume(ctx, &meterv1.ConsumeRequest{
		RequestId: newRequestID(),
		Tab: &meterv1.TabKey{
			Tenant: run.GetTenant(), RunId: run.GetRunId(), AgentInstance: run.GetAgent().GetInstance(),
		},
		Tokens: *tokens,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "input_tokens=%d\n", answer.GetTab().GetTotals().GetUsage().GetInputTokens())
	return nil
}
