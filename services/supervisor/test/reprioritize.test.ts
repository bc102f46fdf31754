import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import {
  ExecutionMeterService,
  type OpenTabRequest,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { InvalidRequestError, UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family } from './family.ts';

const { deliver } = AgentWorkerService.method;
const ATTEMPTS = 10_000;

describe('Reprioritize', () => {
  let family: Family;
  beforeEach(async () => {
    family = await Family.start();
    const { fakes } = family.supervisor;
    fakes.answer(SpawnBudgetService.method.reprioritize, ({ priority }) => ({
      slot: { priority },
    }));
    const opened = new Map<string, OpenTabRequest>();
    // Like the meter: a repeated request must be equal to the first one.
    fakes.answer(ExecutionMeterService.method.openTab, (request) => {
      const first = opened.get(request.requestId) ?? request;
      opened.set(request.requestId, first);
      if (first.priority === request.priority) return { tab: { runId: request.runId } };
      throw new InvalidRequestError('REQUEST_ID_REUSED', 'The request_id has another request.');
    });
  });
  afterEach(() => family.close());

  const failDeliveries = () => {
    const down = () => new UnavailableError('UNAVAILABLE', 'The workers are down.');
    family.supervisor.fakes.fail(deliver, ...Array.from({ length: ATTEMPTS }, down));
  };
  const reprioritize = (runId: string, agentInstance: string) =>
    family.supervisor
      .as('anna', ControlService)
      .reprioritize({ requestId: 'p-1', runId, agentInstance, priority: Priority.CRITICAL });
  const changed = { slot: { priority: Priority.CRITICAL } };

  it('is rejected until the run has started with its original priority (SB-5)', async () => {
    const { fakes } = family.supervisor;
    failDeliveries();
    const start = { requestId: 'r-1', agent: 'lead', goal: 'Find it.' };
    const { run } = await family.supervisor.runs().startRun(start);
    const { runId } = run ?? { runId: '' };
    await fakes.called(deliver, 2);
    await expect(reprioritize(runId, '')).rejects.toMatchObject({ reason: 'AGENT_NOT_DELIVERED' });
    fakes.recover(deliver);
    const stateNow = async () => (await family.supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(stateNow).toBe(RunState.RUNNING);
    expect(await reprioritize(runId, '')).toMatchObject(changed);
  });

  it('is rejected until a child has started with its original priority (SB-5)', async () => {
    const { fakes } = family.supervisor;
    const lead = await family.lead();
    failDeliveries();
    const spawned = lead.spawn('op-1');
    await fakes.called(deliver, 3);
    const { agent } = fakes.deliveries.at(-1) ?? {};
    const instance = agent?.instance ?? '';
    await expect(reprioritize(lead.runId, instance)).rejects.toMatchObject({
      reason: 'AGENT_NOT_DELIVERED',
    });
    fakes.recover(deliver);
    expect((await spawned).child).toMatchObject({ instance });
    expect(await reprioritize(lead.runId, instance)).toMatchObject(changed);
  });
});
