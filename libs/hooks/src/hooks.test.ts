import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type BusMessage, createInProcessBus, hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { cacheSizes } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { CostTracker } from './cost-tracker.ts';
import { followBus } from './follow-bus.ts';
import { followEvents } from './follow-events.ts';
import { HOOK_EVENTS, type HookContext, toHookContext } from './hook-context.ts';
import { HookManager, type HookProblem } from './hook-manager.ts';
import { RunLogger } from './run-logger.ts';

const hook = (init: MessageInitShape<typeof HookEventSchema>) =>
  create(HookEventSchema, { tenant: 'acme', runId: 'run-1', emitter: 'execution-meter', ...init });

const llmEnd = (eventId: string, agent = 'writer', instance = `${agent}-1`) =>
  hook({
    eventId,
    type: HookEventType.LLM_END,
    agent: { name: agent, instance },
    usage: { inputTokens: 100n, outputTokens: 20n },
    costNanoUsd: 3_000n,
  });

const runEnd = (agent: string, instance = `${agent}-1`) =>
  hook({
    eventId: `end-${instance}`,
    type: HookEventType.RUN_END,
    agent: { name: agent, instance },
    status: 'success',
  });

const handoff = (agent: string, child: string) =>
  hook({
    eventId: `handoff-${child}`,
    type: HookEventType.HANDOFF,
    agent: { name: agent, instance: `${agent}-1` },
    otherAgent: { name: child, instance: `${child}-1` },
  });

function watched(options: { agent?: string; timeoutMs?: number } = {}) {
  const problems: HookProblem[] = [];
  const manager = new HookManager({ ...options, onProblem: (problem) => problems.push(problem) });
  return { manager, problems };
}

function messageOf(event: ReturnType<typeof hook>): BusMessage {
  return {
    eventId: event.eventId,
    subject: hookSubject({ tenant: event.tenant, runId: event.runId, event: 'LLM_END' }),
    payload: toBinary(HookEventSchema, event),
    headers: {},
  };
}

const openBus = () =>
  createInProcessBus({
    onError: (error) => {
      throw error;
    },
  });

describe('HookManager', () => {
  it('calls the callbacks of an event, sync and async, at the same time (HK-3)', async () => {
    const { manager, problems } = watched();
    const both = Promise.withResolvers<void>();
    const seen: string[] = [];
    manager.on('LLM_END', async () => {
      seen.push('first');
      await both.promise;
    });
    manager.on('LLM_END', () => {
      seen.push('second');
      both.resolve();
    });
    manager.on('LLM_START', () => seen.push('another event'));
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(seen).toEqual(['first', 'second']);
    expect(problems).toEqual([]);
  });

  it('reports a callback that threw, and calls the others (HK-3)', async () => {
    const { manager, problems } = watched();
    const after = vi.fn();
    manager.on('LLM_END', function broken() {
      throw new Error('no disk');
    });
    manager.on('LLM_END', async function brokenLater() {
      await Promise.resolve();
      throw new Error('no net');
    });
    manager.on('LLM_END', after);
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(after).toHaveBeenCalledOnce();
    expect(problems).toMatchObject([
      { callback: 'broken', event: 'LLM_END', event_id: 'e1', error: { message: 'no disk' } },
      { callback: 'brokenLater', error: { message: 'no net' } },
    ]);
  });

  it('does not wait for a callback that hangs, even if it fails later (HK-3)', async () => {
    const { manager, problems } = watched({ timeoutMs: 1 });
    const hanging = Promise.withResolvers<void>();
    manager.on('LLM_END', () => hanging.promise);
    await manager.dispatch(toHookContext(llmEnd('e1')));
    hanging.reject(new Error('too late'));
    await Promise.resolve();
    expect(problems).toEqual([{ event: 'LLM_END', event_id: 'e1', callback: 'anonymous' }]);
  });

  it('passes a deeply frozen context (HK-3)', async () => {
    const { manager, problems } = watched();
    manager.on('LLM_END', (context) => {
      Object.assign(context, { run_id: 'run-2' });
    });
    manager.on('LLM_END', ({ usage }) => {
      Object.assign(usage ?? {}, { input_tokens: 0 });
    });
    const seen: HookContext[] = [];
    manager.on('LLM_END', (context) => seen.push(context));
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(problems.map(({ error }) => error)).toEqual([
      expect.any(TypeError),
      expect.any(TypeError),
    ]);
    expect(seen).toMatchObject([{ run_id: 'run-1', usage: { input_tokens: 100 } }]);
  });

  it('dispatches only the events of its agent, if one is set (HK-3)', async () => {
    const { manager } = watched({ agent: 'writer' });
    const seen: (string | undefined)[] = [];
    manager.on('LLM_END', ({ agent_id }) => seen.push(agent_id));
    await manager.dispatch(toHookContext(llmEnd('e1', 'reader')));
    await manager.dispatch(toHookContext(llmEnd('e2', 'writer')));
    expect(seen).toEqual(['writer-1']);
  });

  it('unregisters callbacks (HK-3)', async () => {
    const { manager } = watched();
    const [on, registered] = [vi.fn(), vi.fn()];
    const ends = [manager.on('LLM_END', on), manager.register({ LLM_END: registered })];
    for (const end of ends) end();
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(on).not.toHaveBeenCalled();
    expect(registered).not.toHaveBeenCalled();
  });
});

describe('toHookContext', () => {
  it('contains the ids and numbers that the event has (HK-1)', () => {
    const context = toHookContext(
      hook({
        eventId: 'e1',
        type: HookEventType.TOOL_END,
        agent: { name: 'writer', instance: 'writer-1' },
        step: 2,
        toolName: 'search',
        argsSha256: '5d41402a',
        waitingFor: 'user:anna',
        status: 'ok',
        duration: { seconds: 1n, nanos: 500_000_000 },
      }),
    );
    expect(context).toEqual({
      event: 'TOOL_END',
      event_id: 'e1',
      emitter: 'execution-meter',
      tenant: 'acme',
      at: '',
      run_id: 'run-1',
      agent_name: 'writer',
      agent_id: 'writer-1',
      step: 2,
      tool_name: 'search',
      args_sha256: '5d41402a',
      waiting_for: 'user:anna',
      status: 'ok',
      duration_ms: 1_500,
    });
  });

  it('rejects an event of an unknown type (HK-1)', () => {
    expect(() => toHookContext(hook({ eventId: 'e1', type: 99 as HookEventType }))).toThrow(
      'type 99 of event e1',
    );
  });
});

describe('followBus', () => {
  it('dispatches a repeated event once (HK-2, HK-3)', async () => {
    const bus = openBus();
    const { manager } = watched();
    const seen: string[] = [];
    manager.on('LLM_END', ({ event_id }) => seen.push(event_id));
    await followBus(bus, manager, { durable: 'costs' });
    for (const id of ['e1', 'e1', 'e2']) await bus.publish(messageOf(llmEnd(id)));
    expect(seen).toEqual(['e1', 'e2']);
    await bus.close();
  });

  it('does not block publishers with a slow callback, and reports missed events (HK-3)', async () => {
    const bus = openBus();
    const { manager } = watched();
    const [begun, release, done] = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const seen: string[] = [];
    manager.on('LLM_END', async ({ event_id }) => {
      seen.push(event_id);
      begun?.resolve();
      if (event_id === 'e1') await release?.promise;
      if (event_id === 'e400') done?.resolve();
    });
    const onMissed = vi.fn();
    await followBus(bus, manager, { onMissed });
    await bus.publish(messageOf(llmEnd('e1')));
    await begun?.promise;
    for (let n = 2; n <= 400; n += 1) await bus.publish(messageOf(llmEnd(`e${n}`)));
    release?.resolve();
    await done?.promise;
    expect(onMissed).toHaveBeenCalledExactlyOnceWith(399 - 256);
    expect(seen).toHaveLength(257);
    await bus.close();
  });
});

describe('followEvents', () => {
  it('dispatches the hook events of a watched run in their order (HK-3)', async () => {
    const { manager } = watched();
    const seen: string[] = [];
    for (const event of HOOK_EVENTS) manager.on(event, ({ event_id }) => seen.push(event_id));
    async function* events() {
      yield { entry: { case: 'hook' as const, value: llmEnd('e1') } };
      yield { entry: { case: undefined } };
      yield { event: { entry: { case: 'hook' as const, value: llmEnd('e2') } } };
      yield {};
    }
    await followEvents(events(), manager);
    expect(seen).toEqual(['e1', 'e2']);
  });
});

describe('CostTracker', () => {
  it('reports tokens and cost of a run when it ends, and removes it (HK-3)', async () => {
    const { manager } = watched();
    const totals: unknown[] = [];
    const tracker = new CostTracker((runId, total) => totals.push([runId, total]));
    manager.register(tracker.hooks);
    for (const id of ['e1', 'e2']) await manager.dispatch(toHookContext(llmEnd(id)));
    const spent = { input_tokens: 200, output_tokens: 40, cost_nano_usd: 6_000n, calls: 2 };
    expect(tracker.total('run-1')).toEqual(spent);
    await manager.dispatch(toHookContext(runEnd('writer')));
    expect(totals).toEqual([['run-1', spent]]);
    expect(tracker.total('run-1').calls).toBe(0);
  });
});

it('limits the memory for costs of runs that never end (HK-3, CO-2)', async () => {
  const { manager } = watched();
  const tracker = new CostTracker(() => expect.unreachable());
  manager.register(tracker.hooks);
  for (let run = 0; run < 50_000; run += 1) {
    await manager.dispatch({ ...toHookContext(llmEnd(`e${run}`)), run_id: `run-${run}` });
  }
  expect(tracker.total('run-0').calls).toBe(0);
  expect(tracker.total('run-49999').calls).toBe(1);
  const size = cacheSizes().find(({ name }) => name === 'run_costs');
  expect(size?.entries).toBeGreaterThan(10_000);
  expect(size?.bytes).toBeLessThan(17_000_000);
});

describe('the total of an agent', () => {
  const events = [
    llmEnd('e1', 'lead'),
    handoff('lead', 'child'),
    llmEnd('e2', 'child'),
    handoff('child', 'grandchild'),
    llmEnd('e3', 'grandchild'),
    runEnd('grandchild'),
    runEnd('child'),
    llmEnd('e4', 'lead'),
    runEnd('lead'),
  ];
  const totalsOf = async (options: { agent?: string }, order = events) => {
    const { manager } = watched(options);
    const totals: unknown[] = [];
    const tracker = new CostTracker((_, { calls, input_tokens }, { agent_id }) =>
      totals.push([agent_id, calls, input_tokens]),
    );
    manager.register(tracker.hooks);
    for (const event of order) await manager.dispatch(toHookContext(event));
    expect(tracker.total('run-1').calls).toBe(0);
    return totals;
  };

  it('includes its descendants; the total of the root covers the whole run (HK-3)', async () => {
    expect(await totalsOf({})).toEqual([
      ['grandchild-1', 1, 100],
      ['child-1', 2, 200],
      ['lead-1', 4, 400],
    ]);
  });

  it('is reported for each instance when the manager has one agent (HK-3)', async () => {
    expect(await totalsOf({ agent: 'child' })).toEqual([['child-1', 1, 100]]);
    const twins = [
      llmEnd('e1', 'child'),
      llmEnd('e5', 'child', 'child-2'),
      runEnd('child'),
      runEnd('child', 'child-2'),
    ];
    expect(await totalsOf({ agent: 'child' }, twins)).toEqual([
      ['child-1', 1, 100],
      ['child-2', 1, 100],
    ]);
  });
});

describe('RunLogger', () => {
  it('keeps the last events only (HK-3)', async () => {
    const { manager } = watched();
    const logger = new RunLogger(2);
    manager.register(logger.hooks);
    for (const id of ['e1', 'e2', 'e3']) await manager.dispatch(toHookContext(llmEnd(id)));
    expect(logger.events().map(({ event_id }) => event_id)).toEqual(['e2', 'e3']);
    expect(logger.events('run-2')).toEqual([]);
  });
});
