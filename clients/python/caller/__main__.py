"""`python -m caller COMMAND`: runs one command; the commands are the same as in the Go client."""

import argparse
import sys

import grpc

from . import approvals, meter, runs
from .problem import BudgetSpentError, MisuseError, explain

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_BUDGET = 3


def command_line() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    parser = argparse.ArgumentParser(
        prog="caller",
        description="Calls Writ. WRIT_API_KEY is required; the default of WRIT_ADDRESS is 127.0.0.1:8080.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = commands.add_parser("agents", help="lists the agents that can be started")
    add.set_defaults(run=runs.list_agents)

    add = commands.add_parser("start", help="starts a run and prints its id")
    add.add_argument("agent")
    add.add_argument("goal")
    add.add_argument("--model", default="", help="the model to use instead of the agent's own")
    add.add_argument("--max-tokens", type=int, help="largest number of tokens of the whole run")
    add.set_defaults(run=runs.start)

    for name, run, about in (
        ("watch", runs.watch, "prints the events of a run until it ends"),
        ("usage", runs.usage, "prints the usage of a run"),
        ("approvals", approvals.list_pending, "lists the pending approvals of a run"),
    ):
        add = commands.add_parser(name, help=about)
        add.add_argument("run_id", metavar="run")
        add.set_defaults(run=run)

    add = commands.add_parser("approve", help="approves an action, optionally with changed arguments")
    add.add_argument("approval")
    add.add_argument("--edit", default="", help="arguments with new values, as a JSON object")
    add.add_argument("--comment", default="", help="reason, for the audit record")
    add.set_defaults(run=approvals.approve)

    add = commands.add_parser("cancel", help="ends a run with all its agents")
    add.add_argument("run_id", metavar="run")
    add.add_argument("--reason", default="", help="reason, for the audit record")
    add.set_defaults(run=runs.cancel)

    add = commands.add_parser("consume", help="books externally used tokens on a run's tab")
    add.add_argument("run_id", metavar="run")
    add.add_argument("--tokens", type=int, required=True, help="number of tokens")
    add.set_defaults(run=meter.consume)
    return parser


def main() -> int:
    """Runs one command; an exhausted budget has its own exit status."""
    given = command_line().parse_args()
    try:
        given.run(given)
    except MisuseError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except BudgetSpentError as error:
        print(error, file=sys.stderr)
        return EXIT_BUDGET
    except grpc.RpcError as error:
        problem = explain(error)
        print(problem.sentence, file=sys.stderr)
        return EXIT_BUDGET if problem.reason == "BUDGET_EXHAUSTED" else EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
