import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const AGENTS = `
agents:
  - name: external-bot
    kind: external
    model: { model: main }
`;
const CONVERSATION = '5'.repeat(64);

describe('OpenExternalRun', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    const agents = { text: AGENTS, file: 'agents.yaml' };
    supervisor = await SupervisorUnderTest.start({ config: { agents } });
  });
  afterEach(() => supervisor.close());

  const open = () =>
    supervisor.fakes
      .peer('agent-proxy')
      .client(SupervisionService, {
        audience: 'supervisor',
        address: supervisor.service.address,
      })
      .openExternalRun({ apiKey: supervisor.apiKey('bot'), conversation: CONVERSATION });

  const stateOf = async (runId: string) => (await supervisor.runs().getRun({ runId })).run?.state;

  it('opens no new run while a cancelled run is ending or after it has ended (AP-1, EM-2)', async () => {
    const { runId } = await open();
    const { closeTab } = ExecutionMeterService.method;
    const down = new UnavailableError('STORE_UNREACHABLE', 'The meter is down.');
    supervisor.fakes.fail(closeTab, ...Array.from({ length: 1_000 }, () => down));
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await supervisor.fakes.called(closeTab);
    expect(await stateOf(runId)).toBe(RunState.ENDING);
    await expect(open()).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { run_id: runId, stop_reason: 'cancelled' },
    });
    supervisor.fakes.recover(closeTab);
    await expect.poll(() => stateOf(runId)).toBe(RunState.CANCELLED);
    await expect(open()).rejects.toMatchObject({ reason: 'RUN_ENDED' });
    expect((await supervisor.runs().listRuns({})).runs).toHaveLength(1);
  });

  it('returns HALTED for a run halted before its start, and starts it after the lift (AP-2, SV-9)', async () => {
    const { openPool } = SpawnBudgetService.method;
    const down = new UnavailableError('STORE_UNREACHABLE', 'The pools are down.');
    supervisor.fakes.fail(openPool, ...Array.from({ length: 10_000 }, () => down));
    const rejected = expect(open()).rejects.toMatchObject({ reason: 'HALTED' });
    await supervisor.fakes.called(openPool);
    const control = supervisor.as('anna', ControlService);
    const scope = { kind: { case: 'tenant', value: 'acme' } } as const;
    const { halt } = await control.halt({ requestId: 'h-1', scope, reason: 'Stop.' });
    await rejected;
    await expect(open()).rejects.toMatchObject({ reason: 'HALTED' });
    supervisor.fakes.recover(openPool);
    await control.resume({ requestId: 'h-2', haltId: halt?.haltId ?? '' });
    const { runId } = await open();
    expect(await stateOf(runId)).toBe(RunState.RUNNING);
  });
});
