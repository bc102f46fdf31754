package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	meterv1 "writ.example/caller/gen/writ/meter/v1"
)

// consume books tokens on the tab of a run's root agent. The meter is an internal service at
// WRIT_EXECUTION_METER_ADDRESS and requires a service token in WRIT_SERVICE_TOKEN. When a cap is exceeded, the meter
// returns BUDGET_EXHAUSTED with the cap, the used amount and the limit.
func consume(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags()
	tokens := flags.Int64("tokens", 0, "number of tokens")
	given, err := parse(flags, args, "RUN")
	if err != nil {
		return err
	}
	token := os.Getenv("WRIT_SERVICE_TOKEN")
	if token == "" {
		return errors.New("WRIT_SERVICE_TOKEN is not set")
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
	meter, err := openService("execution-meter", "WRIT_EXECUTION_METER_ADDRESS", "127.0.0.1:50053", token)
	if err != nil {
		return err
	}
	defer meter.Close()
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	answer, err := meterv1.NewExecutionMeterServiceClient(meter).Consume(ctx, &meterv1.ConsumeRequest{
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
