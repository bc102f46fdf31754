package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Writ's errors carry an ErrorInfo of this domain; programs should read its reason.
const domain = "writ"

// infoOf returns the ErrorInfo of an error of Writ; nil for other errors.
func infoOf(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
			return info
		}
	}
	return nil
}

// report prints an error in one line and returns its exit code.
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

// A budgetError reports that a run ended because a budget was exhausted.
type budgetError struct{ dimension string }

func (e *budgetError) Error() string { return "budget exhausted: " + e.dimension }

// spentBudget returns an error for a stop reason that names an exhausted budget, and nil otherwise.
func spentBudget(stopReason string) error {
	if dimension, ok := strings.CutPrefix(stopReason, "budget_exhausted:"); ok {
		return &budgetError{dimension}
	}
	return nil
}
