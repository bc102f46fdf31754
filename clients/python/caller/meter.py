"""Booking on a tab: a call of an internal service, and where BUDGET_EXHAUSTED comes from."""

from argparse import Namespace

from writ.meter.v1 import execution_meter_service_pb2 as pb
from writ.meter.v1.execution_meter_service_pb2_grpc import ExecutionMeterServiceStub

from .door import TIMEOUT_S, new_request_id, public_door, service_door
from .runs import read_run


def consume(given: Namespace) -> None:
    """Books tokens on the tab of a run's first agent.

    The meter wants the token of a service that may call it, in WRIT_SERVICE_TOKEN, and is where
    WRIT_EXECUTION_METER_ADDRESS says. When a cap is exceeded it answers BUDGET_EXHAUSTED with which, how
    much, and of how much.
    """
    with public_door() as door:
        run = read_run(door, given.run_id)
    tab = pb.TabKey(tenant=run.tenant, run_id=run.run_id, agent_instance=run.agent.instance)
    request = pb.ConsumeRequest(request_id=new_request_id(), tab=tab, tokens=given.tokens)
    meter = ("execution-meter", "WRIT_EXECUTION_METER_ADDRESS", "127.0.0.1:50053")
    with service_door(*meter) as wire:
        answer = ExecutionMeterServiceStub(wire).Consume(request, timeout=TIMEOUT_S)
    print(f"input_tokens={answer.tab.totals.usage.input_tokens}")
