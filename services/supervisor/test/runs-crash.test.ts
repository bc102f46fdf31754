import { once } from 'node:events';
import type { DescMethod } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family } from './family.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

const START_STEPS: readonly DescMethod[] = [
  SpawnBudgetService.method.openPool,
  ExecutionMeterService.method.openTab,
  AgentWorkerService.method.deliver,
];
const END_STEPS: readonly DescMethod[] = [
  ExecutionMeterService.method.freeze,
  ToolGatewayService.method.freeze,
  AgentWorkerService.method.cancel,
  ExecutionMeterService.method.closeTab,
  SpawnBudgetService.method.closePool,
];
const unavailable = () => new UnavailableError('UNAVAILABLE', 'The peer is down.');

describe('orders', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  async function cancelled(runId: string): Promise<void> {
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await Array.fromAsync(supervisor.runs().watchRun({ runId }));
    const { run } = await supervisor.runs().getRun({ runId });
    expect(run?.state).toBe(RunState.CANCELLED);
  }

  /** Checks that every retry of a call had the same id. */
  function expectOneRequestEach(methods: readonly DescMethod[]): void {
    for (const method of methods) {
      const ids = supervisor.fakes.requests(method).map((request) => JSON.stringify(idOf(request)));
      expect(new Set(ids).size, method.name).toBe(1);
    }
  }

  it('complete when every step fails at first', async () => {
    for (const method of [...START_STEPS, ...END_STEPS]) {
      // More failures than the client retries.
      supervisor.fakes.fail(method, ...Array.from({ length: 6 }, unavailable));
    }
    const { run } = await supervisor.runs().startRun(START);
    await supervisor.fakes.called(AgentWorkerService.method.deliver, 7);
    await cancelled(run?.runId ?? '');
    expectOneRequestEach([...START_STEPS, ...END_STEPS]);
  });

  it.each(START_STEPS.map((method) => [method.name, method] as const))(
    'resume the start of a run after a stop during %s',
    async (_name, method) => {
      supervisor.fakes.fail(method, unavailable(), hang, hang, hang, hang, hang);
      const { run } = await supervisor.runs().startRun(START);
      await supervisor.fakes.called(method, 2);
      await supervisor.stop();
      supervisor.fakes.recover(method);
      await supervisor.restart();
      await supervisor.fakes.called(AgentWorkerService.method.deliver);
      await cancelled(run?.runId ?? '');
      expectOneRequestEach(START_STEPS);
    },
  );

  it.each(END_STEPS.map((method) => [method.name, method] as const))(
    'resume the end of a run after a stop during %s',
    async (_name, method) => {
      const { run } = await supervisor.runs().startRun(START);
      const runId = run?.runId ?? '';
      await supervisor.fakes.called(AgentWorkerService.method.deliver);
      supervisor.fakes.fail(method, unavailable(), hang, hang, hang, hang, hang);
      await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
      await supervisor.fakes.called(method, 2);
      await supervisor.stop();
      supervisor.fakes.recover(method);
      await supervisor.restart();
      await cancelled(runId);
      expectOneRequestEach(END_STEPS);
    },
  );

  it('survive kill -9 during a call to the worker', async () => {
    await supervisor.stop();
    supervisor.fakes.fail(AgentWorkerService.method.deliver, hang);
    const { child, edgeAddress } = await supervisor.spawnProcess();
    const { run } = await supervisor.runs('anna', edgeAddress).startRun(START);
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await supervisor.restart();
    await supervisor.fakes.called(AgentWorkerService.method.deliver, 2);
    await cancelled(run?.runId ?? '');
    expectOneRequestEach(START_STEPS);
  });
});

describe('the order that ends a run with nothing left to stop', () => {
  const CALLS: readonly DescMethod[] = [
    AgentWorkerService.method.cancel,
    ExecutionMeterService.method.closeTab,
  ];
  let family: Family;
  beforeEach(async () => {
    family = await Family.start();
  });
  afterEach(() => family.close());

  /** Checks that the run ended once, with its answer, and that every retry of a call had the same id. */
  async function expectOneEnd(runId: string): Promise<void> {
    const { fakes } = family.supervisor;
    const events = await Array.fromAsync(family.supervisor.runs().watchRun({ runId }));
    const ends = events
      .map(({ event }) => event?.entry)
      .filter((entry) => entry?.case === 'result');
    expect(ends).toMatchObject([{ value: { answer: 'Done.' } }]);
    for (const method of CALLS) {
      const ids = fakes.requests(method).map((request) => idOf(request));
      expect(new Set(ids).size, method.name).toBe(1);
    }
    expect(fakes.requests(ToolGatewayService.method.freeze)).toEqual([]);
  }

  it.each(CALLS.map((method) => [method.name, method] as const))(
    'resumes after a stop during %s (AG-7, CO-1)',
    async (_name, method) => {
      const { supervisor } = family;
      const lead = await family.lead();
      supervisor.fakes.fail(method, unavailable(), hang, hang, hang, hang, hang);
      await lead.final('op-1');
      await supervisor.fakes.called(method, 2);
      await supervisor.stop();
      supervisor.fakes.recover(method);
      await supervisor.restart();
      await expectOneEnd(lead.runId);
    },
  );

  it('does not wait until spawn-budget has closed the pool (AG-7, CO-1)', async () => {
    const { supervisor } = family;
    const { closePool } = SpawnBudgetService.method;
    const lead = await family.lead();
    supervisor.fakes.fail(closePool, ...Array.from({ length: 9 }, () => hang));
    await lead.final('op-1');
    await expectOneEnd(lead.runId);
  });

  it('resumes after kill -9 during its commit, when the tab is closed (AG-7, CO-1)', async () => {
    const { supervisor } = family;
    const lead = await family.lead();
    supervisor.fakes.fail(
      AgentWorkerService.method.cancel,
      ...Array.from({ length: 9 }, () => hang),
    );
    await lead.final('op-1');
    await supervisor.fakes.called(AgentWorkerService.method.cancel);
    await supervisor.stop();
    supervisor.fakes.recover(AgentWorkerService.method.cancel);
    const { child } = await supervisor.spawnProcess({
      execArgv: ['--import', new URL('./kill-at-commit.ts', import.meta.url).href],
      env: { WRIT_TEST_KILL_AFTER: 'done' },
    });
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
    await supervisor.restart();
    await expectOneEnd(lead.runId);
  });
});

/** Never answers; the call ends when its caller cancels it. */
async function hang(): Promise<void> {
  await new Promise(() => undefined);
}

function idOf(request: object): unknown {
  if ('requestId' in request) return request.requestId;
  return 'order' in request ? (request.order as { orderId: string }).orderId : undefined;
}
