// Caller starts, watches and cancels runs of Writ and answers approvals. It uses only code that is generated
// from proto/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes; scripts can distinguish an exhausted budget from an invalid command line.
const (
	exitFailed = 1
	exitUsage  = 2
	exitBudget = 3
)

// A command of the client.
type command struct {
	// usage has the arguments of the command.
	usage string
	about string
	run   func(ctx context.Context, args []string, out io.Writer) error
}

var commands = map[string]command{
	"agents":    {"", "lists the agents that can be started", listAgents},
	"start":     {"[-model M] [-max-tokens N] AGENT GOAL", "starts a run and prints its id", startRun},
	"watch":     {"RUN", "prints the events of a run until it ends", watchRun},
	"approvals": {"RUN", "lists the pending approvals of a run", listApprovals},
	"approve":   {"[-edit JSON] [-comment TEXT] APPROVAL", "approves an action, optionally with changed arguments", approve},
	"usage":     {"RUN", "prints the usage of a run", printUsage},
	"cancel":    {"[-reason TEXT] RUN", "ends a run with all its agents", cancelRun},
	"consume":   {"-tokens N RUN", "books externally used tokens on a run's tab", consume},
}

// The order of the commands in the help text.
var order = []string{"agents", "start", "watch", "approvals", "approve", "usage", "cancel", "consume"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(call(ctx, os.Args[1:]))
}

func call(ctx context.Context, args []string) int {
	if len(args) == 0 {
		return help()
	}
	chosen, known := commands[args[0]]
	if !known {
		return help()
	}
	err := chosen.run(ctx, args[1:], os.Stdout)
	var misuse *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &misuse):
		fmt.Fprintf(os.Stderr, "%s\nusage: caller %s %s\n", misuse, args[0], chosen.usage)
		return exitUsage
	default:
		return report(os.Stderr, err)
	}
}

func help() int {
	fmt.Fprintln(os.Stderr, "usage: caller COMMAND …")
	for _, name := range order {
		fmt.Fprintf(os.Stderr, "  %-10s %-50s %s\n", name, commands[name].usage, commands[name].about)
	}
	fmt.Fprintln(os.Stderr, "WRIT_API_KEY is required; the default of WRIT_ADDRESS is 127.0.0.1:8080.")
	return exitUsage
}

// A usageError is an invalid command line.
type usageError struct{ what string }

func (e *usageError) Error() string { return e.what }

// parse reads a command's flags and expects exactly the arguments named.
func parse(flags *flag.FlagSet, args []string, names ...string) ([]string, error) {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return nil, &usageError{err.Error()}
	}
	if flags.NArg() != len(names) {
		return nil, &usageError{fmt.Sprintf("expected %v", names)}
	}
	return flags.Args(), nil
}

func newFlags() *flag.FlagSet { return flag.NewFlagSet("caller", flag.ContinueOnError) }
