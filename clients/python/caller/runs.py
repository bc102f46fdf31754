"""Starting, watching, reading and cancelling runs."""

import time
from argparse import Namespace
from collections.abc import Iterator
from threading import Timer

import grpc
from writ.hook.v1.hook_event_pb2 import HookEventType
from writ.review.v1.action_pb2 import Action
from writ.review.v1.decision_pb2 import Verdict
from writ.run.v1 import run_pb2 as run_pb
from writ.run.v1 import run_service_pb2 as pb
from writ.run.v1.run_service_pb2_grpc import RunServiceStub
from writ.supervision.v1.supervision_pb2 import ExecutionBudget

from .channel import TIMEOUT_S, new_request_id, public_channel
from .problem import MisuseError, check_spent

#: Pause before a broken watch is resumed, in seconds.
PAUSE_S = 0.5

#: Time without a message after which a watch is considered broken, in seconds.
#: The supervisor sends a heartbeat after five seconds without an event.
SILENCE_S = 15.0

#: Statuses after which a watch is resumed: UNAVAILABLE after a broken connection, CANCELLED after
#: silence.
BROKEN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def list_agents(_: Namespace) -> None:
    """Prints the agents that can be started."""
    with public_channel() as channel:
        for agent in RunServiceStub(channel).ListAgents(pb.ListAgentsRequest(), timeout=TIMEOUT_S).agents:
            print(f"{agent.name}: {agent.description}")


def start(given: Namespace) -> None:
    """Starts a run and prints its id. An omitted limit means unlimited; zero means zero."""
    request = pb.StartRunRequest(
        request_id=new_request_id(), agent=given.agent, goal=given.goal, model=given.model
    )
    if given.max_tokens is not None:
        request.run_budget.CopyFrom(ExecutionBudget(max_tokens=given.max_tokens))
    with public_channel() as channel:
        print(RunServiceStub(channel).StartRun(request, timeout=TIMEOUT_S).run.run_id)


def watch(given: Namespace) -> None:
    """Follows a run to its end.

    A broken or silent watch is resumed after the last event, so that no event is missed or repeated.
    """
    after = 0
    with public_channel() as channel:
        while True:
            request = pb.WatchRunRequest(run_id=given.run_id, after_sequence=after)
            try:
                for answer in until_silent(RunServiceStub(channel).WatchRun(request)):
                    if answer.event.HasField("heartbeat"):
                        continue
                    after = answer.event.sequence
                    if answer.event.HasField("result"):
                        ending(answer.event.result)
                        return
                    print(line(answer.event), flush=True)
            except grpc.RpcError as error:
                if error.code() not in BROKEN:
                    raise
            time.sleep(PAUSE_S)


def until_silent(call: grpc.Call) -> Iterator[pb.WatchRunResponse]:
    """Yields the messages of a stream, and cancels it if none arrives within SILENCE_S."""
    while True:
        alarm = Timer(SILENCE_S, call.cancel)
        alarm.daemon = True
        alarm.start()
        try:
            answer = next(call)
        except StopIteration:
            return
        finally:
            alarm.cancel()
        yield answer


def line(event: run_pb.RunEvent) -> str:
    """An event in one line: position, type and subject."""
    match event.WhichOneof("entry"):
        case "decision":
            decided = event.decision
            verdict = Verdict.Name(decided.verdict)
            return f"{event.sequence} {verdict} {about(decided.action)} {decided.reason}"
        case "hook":
            return f"{event.sequence} {HookEventType.Name(event.hook.type)} {event.hook.tool_name}"
        case _:
            return str(event.sequence)


def about(action: Action) -> str:
    """A short name of an action."""
    match action.WhichOneof("kind"):
        case "tool":
            return str(action.tool.tool)
        case "client_tool":
            return str(action.client_tool.tool)
        case "delegation":
            return str(action.delegation.agent)
        case "final":
            return "final"
        case _:
            return "nothing"


def ending(result: run_pb.RunResult) -> None:
    """Prints how a run ended. An exhausted budget is an error, like a rejected call."""
    print(run_pb.RunStatus.Name(result.status), result.stop_reason)
    if result.answer:
        print(result.answer)
    check_spent(result.stop_reason)


def usage(given: Namespace) -> None:
    """Prints what a run has spent."""
    with public_channel() as channel:
        run = read_run(channel, given.run_id)
    if not run.HasField("result"):
        raise MisuseError(f"run {run.run_id} has not ended; its usage is available at its end")
    spent = run.result.usage
    print(
        f"input_tokens={spent.usage.input_tokens} output_tokens={spent.usage.output_tokens} "
        f"turns={spent.turns} cost_usd={spent.cost_nano_usd / 1e9:.9f}"
    )


def cancel(given: Namespace) -> None:
    """Cancels a run with all its agents, and prints its state."""
    request = pb.CancelRunRequest(request_id=new_request_id(), run_id=given.run_id, reason=given.reason)
    with public_channel() as channel:
        run = RunServiceStub(channel).CancelRun(request, timeout=TIMEOUT_S).run
    print(run_pb.RunState.Name(run.state))


def read_run(channel: grpc.Channel, run_id: str) -> run_pb.Run:
    """Reads a run, with its result after it has ended."""
    return RunServiceStub(channel).GetRun(pb.GetRunRequest(run_id=run_id), timeout=TIMEOUT_S).run
