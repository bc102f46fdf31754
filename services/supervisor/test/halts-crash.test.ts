import { once } from 'node:events';
import { ControlService, HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ORDER_STEPS } from '../src/domain/order/order-rules.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const PRELOAD = new URL('./kill-at-commit.ts', import.meta.url).href;
const REASON = 'Refunds look wrong.';

/** The values that are stored at the end of each step: the next step, and `done` after the last one. */
const endsOf = (steps: readonly string[]) => [...steps.slice(1), 'done'];

describe('a supervisor that is killed at the end of each step of a halt', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  /** Starts one process for each step, one after the other; each process is killed at the end of its step. */
  async function killAt(
    ends: readonly string[],
    send: (edgeAddress: string) => void,
  ): Promise<void> {
    for (const step of ends) {
      const { child, edgeAddress } = await supervisor.spawnProcess({
        execArgv: ['--import', PRELOAD],
        env: { WRIT_TEST_KILL_AFTER: step },
      });
      send(edgeAddress);
      const [, signal] = await once(child, 'exit');
      expect(signal, step).toBe('SIGKILL');
    }
  }

  it('completes the halt after the restarts, and later completes its lift (SV-9)', async () => {
    const { run } = await supervisor.runs().startRun({
      requestId: 'req-1',
      agent: 'worker',
      goal: 'Do it.',
    });
    const runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    await supervisor.stop();
    const scope = { kind: { case: 'run', value: { tenant: 'acme', runId } } } as const;
    const order = { requestId: 'halt-1', scope, reason: REASON };
    const control = (address?: string) => supervisor.as('anna', ControlService, address);

    await killAt(endsOf(ORDER_STEPS.halt), (address) => {
      void control(address)
        .halt(order)
        .catch(() => undefined);
    });
    await supervisor.restart();
    const { halt } = await control().halt(order);
    expect(halt).toMatchObject({ state: HaltState.IN_FORCE, reason: REASON, orderedBy: 'anna' });
    const haltId = halt?.haltId ?? '';
    const state = async () => (await supervisor.runs().getRun({ runId })).run?.state;
    expect(await state()).toBe(RunState.PARKED);
    for (const service of [ExecutionMeterService, ToolGatewayService]) {
      const orders = supervisor.fakes
        .requests(service.method.freeze)
        .map((request) => request.order);
      expect(orders.length).toBeGreaterThan(1);
      for (const sent of orders) {
        expect(sent).toMatchObject({ orderId: haltId, cause: FreezeCause.HALT, reason: REASON });
      }
    }
    await supervisor.stop();

    await killAt(endsOf(ORDER_STEPS.resume), (address) => {
      void control(address)
        .resume({ requestId: 'resume-1', haltId })
        .catch(() => undefined);
    });
    await supervisor.restart();
    const lifted = await control().resume({ requestId: 'resume-1', haltId });
    expect(lifted.halt).toMatchObject({ state: HaltState.RESUMED, resumedBy: 'anna' });
    expect(await state()).toBe(RunState.RUNNING);
    const signals = supervisor.fakes.requests(AgentWorkerService.method.signal);
    expect(new Set(signals.map(({ name }) => name))).toEqual(new Set(['halted', 'resumed']));
  });
});
