package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Writ's errors carry an ErrorInfo of this domain; its reason is what programs should look at.
const domain = "writ"

// infoOf finds the ErrorInfo that Writ gave an error; nil when the error is not Writ's.
func infoOf(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
			return info
		}
	}
	return nil
}

// report says what went wrong in one line, and returns the exit status for it.
func report(to io.Writer, err error) int {
	var spent *budgetError
	if errors.As(err, &spent) {
		fmt.Fprintln(to, spent)
		return exitBudget
	}
	info := infoOf(err)
	if info == nil {
		fmt.Fprintln(to, status.Convert(err).Message())
		return exitFailed
	}
	if info.GetReason() == "BUDGET_EXHAUSTED" {
		cap := info.GetMetadata()
		fmt.Fprintf(to, "budget exhausted: %s, %s of %s\n", cap["dimension"], cap["used"], cap["limit"])
		return exitBudget
	}
	fmt.Fprintf(to, "%s: %s\n", info.GetReason(), status.Convert(err).Message())
	return exitFailed
}

// A budgetError is a run that ended since a budget of it was spent.
type budgetError struct{ dimension string }

func (e *budgetError) Error() string { return "budget exhausted: " + e.dimension }

// spentBudget is an error when a stop reason says that a budget was spent, and which.
func spentBudget(stopReason string) error {
	if dimension, ok := strings.CutPrefix(stopReason, "budget_exhausted:"); ok {
		return &budgetError{dimension}
	}
	return nil
}
