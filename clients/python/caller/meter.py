"""Booking on a tab: a call to an internal service that may fail with BUDGET_EXHAUSTED."""

from argparse import Namespace

from writ.meter.v1 import execution_meter_service_pb2 as pb
from writ.meter.v1.execution_meter_service_pb2_grpc import ExecutionMeterServiceStub

from .channel import TIMEOUT_S, new_request_id, public_channel, service_channel
from .runs import read_run


def consume(given: Namespace) -> None:
    """Books tokens on the tab of a run's root agent.

    The meter is an internal service at WRIT_EXECUTION_METER_ADDRESS and requires a service token in
    WRIT_SERVICE_TOKEN. When a cap is exceeded, it returns BUDGET_EXHAUSTED with the cap, the used amount
    and the limit.
    """
    with public_channel() as channel:
        run = read_run(channel, given.run_id)
    tab = pb.TabKey(tenant=run.tenant, run_id=run.run_id, agent_instance=run.agent.instance)
    request = pb.ConsumeRequest(request_id=new_request_id(), tab=tab, tokens=given.tokens)
    meter = ("execution-meter", "WRIT_EXECUTION_METER_ADDRESS", "127.0.0.1:50053")
    with service_channel(*meter) as meter_channel:
        answer = ExecutionMeterServiceStub(meter_channel).Consume(request, timeout=TIMEOUT_S)
    print(f"input_tokens={answer.tab.totals.usage.input_tokens}")
