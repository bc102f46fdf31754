import { once } from 'node:events';
import type { DescMethod } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family, type Member } from './family.ts';

const SPAWN_STEPS: readonly DescMethod[] = [
  SpawnBudgetService.method.acquire,
  ExecutionMeterService.method.openTab,
  AgentWorkerService.method.deliver,
];
const END_STEPS: readonly DescMethod[] = [
  ExecutionMeterService.method.freeze,
  ToolGatewayService.method.freeze,
  AgentWorkerService.method.cancel,
  ExecutionMeterService.method.closeTab,
  SpawnBudgetService.method.release,
];
const unavailable = () => new UnavailableError('UNAVAILABLE', 'The peer is down.');

describe('orders about children', () => {
  let family: Family;
  let lead: Member;
  beforeEach(async () => {
    family = await Family.start();
    lead = await family.lead();
  });
  afterEach(() => family.close());

  const callsOf = (method: DescMethod) => family.supervisor.fakes.requests(method).length;

  /** Checks for each method that all its calls for the child had the same id. */
  function expectOneIdEach(methods: readonly DescMethod[], instance: string): void {
    for (const method of methods) {
      const ids = family.supervisor.fakes
        .requests(method)
        .filter((request) => JSON.stringify(request, bigints).includes(instance))
        .map((request) => idOf(request));
      expect(new Set(ids).size, method.name).toBe(1);
    }
  }

  it('complete when every step fails at first', async () => {
    for (const method of [...SPAWN_STEPS, ...END_STEPS]) {
      family.supervisor.fakes.fail(method, ...Array.from({ length: 6 }, unavailable));
    }
    const scout = await lead.child('op-1');
    await lead.end(scout.instance);
    expectOneIdEach([...SPAWN_STEPS, ...END_STEPS], scout.instance);
  });

  it.each(SPAWN_STEPS.map((method) => [method.name, method] as const))(
    'resume the spawn of a child after a stop during %s, and a retry returns the child (SUP-9)',
    async (_name, method) => {
      const { supervisor } = family;
      const before = callsOf(method);
      supervisor.fakes.fail(method, unavailable(), hang, hang, hang, hang);
      const lost = lead.spawn('op-1').catch((error: Error) => error);
      await supervisor.fakes.called(method, before + 2);
      await supervisor.stop();
      expect(await lost).toBeInstanceOf(Error);
      supervisor.fakes.recover(method);
      await supervisor.restart();
      const { child } = await lead.spawn('op-1');
      expectOneIdEach(SPAWN_STEPS, child?.instance ?? '');
    },
  );

  it.each(END_STEPS.map((method) => [method.name, method] as const))(
    'resume the end of a child after a stop during %s, and a retry returns the answer (SUP-8)',
    async (_name, method) => {
      const { supervisor } = family;
      const scout = await lead.child('op-1');
      const before = callsOf(method);
      supervisor.fakes.fail(method, unavailable(), hang, hang, hang, hang);
      const lost = lead.end(scout.instance).catch((error: Error) => error);
      await supervisor.fakes.called(method, before + 2);
      await supervisor.stop();
      expect(await lost).toBeInstanceOf(Error);
      supervisor.fakes.recover(method);
      await supervisor.restart();
      expect((await lead.end(scout.instance)).stopReason).toBe('cancelled');
      expectOneIdEach(END_STEPS, scout.instance);
    },
  );

  it('release the slot of a child if its parent ended during the spawn (SUP-8)', async () => {
    const { fakes } = family.supervisor;
    const nested = await lead.child('op-1', 'lead');
    const { promise, resolve } = Promise.withResolvers<void>();
    fakes.fail(ExecutionMeterService.method.openTab, () => promise);
    const lost = nested.spawn('op-1').catch((error: Error) => error);
    await fakes.called(ExecutionMeterService.method.openTab, 3);
    await nested.final('op-2');
    resolve();
    expect(await lost).toMatchObject({ reason: 'SPAWN_FAILED' });
    const child = fakes.requests(SpawnBudgetService.method.acquire).at(-1)?.agent?.instance;
    await expect
      .poll(() => fakes.requests(SpawnBudgetService.method.release), { interval: 5 })
      .toMatchObject([{ agentInstance: child }]);
    expect(fakes.deliveries.map(({ agent }) => agent?.instance)).not.toContain(child);
  });

  it('do not release a slot that the end of the run already releases', async () => {
    const { fakes } = family.supervisor;
    fakes.fail(AgentWorkerService.method.deliver, ...Array.from({ length: 5 }, unavailable));
    const lost = lead.spawn('op-1').catch((error: Error) => error);
    await fakes.called(AgentWorkerService.method.deliver, 2);
    await family.cancelled(lead.runId);
    expect(await lost).toMatchObject({ reason: 'SPAWN_FAILED', metadata: { cause: 'RUN_ENDED' } });
    const child = fakes.requests(SpawnBudgetService.method.acquire).at(-1)?.agent?.instance;
    const closed = fakes.requests(ExecutionMeterService.method.closeTab);
    expect(closed.map(({ tab }) => tab?.agentInstance)).toContain(child);
    expect(callsOf(SpawnBudgetService.method.release)).toBe(0);
  });
});

/** Never answers; the call ends when its caller cancels it. */
async function hang(): Promise<void> {
  await once(new EventTarget(), 'never');
}

function idOf(request: object): unknown {
  if ('requestId' in request) return request.requestId;
  return 'order' in request ? (request.order as { orderId: string }).orderId : undefined;
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
