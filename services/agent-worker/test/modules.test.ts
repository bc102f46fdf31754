import { ChatRole } from '@writ/contracts/writ/model/v1/model_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { PreconditionError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AgentFactory } from '../src/runtime/agent.ts';
import { AGENT, type ManifestFields, RUN, TENANT } from './delivery.ts';
import type { FakeAnswer, FakeModel } from './fake-meter.ts';
import { failing, saved } from './modules/extensions.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const { REACT, JSON_ACTION } = AgentKind;
const moduleAt = (name: string) => new URL(`modules/${name}.ts`, import.meta.url).pathname;
const EXTENSIONS = { agentModules: [moduleAt('extensions')] };
const use = (name: string, options = {}) => [{ name, optionsJson: JSON.stringify(options) }];

beforeEach(() => {
  saved.clear();
  failing.saves = 0;
});

async function start(model: FakeModel, manifest: Partial<ManifestFields>) {
  const world = await World.start({ model });
  world.supervisor.rule = approveAll;
  await world.startWorker(EXTENSIONS);
  await world.deliver({ manifest });
  return world;
}

/** Returns a model that makes one tool call in the format of the agent kind, and then answers. */
function callOnce(kind: AgentKind): FakeModel {
  let turn = 0;
  return (): FakeAnswer => {
    turn += 1;
    const [name, args] = ['get_refund_context', { user_id: 42 }] as const;
    if (kind === REACT) return turn > 1 ? 'Done.' : { toolUses: [{ tool: name, args }] };
    return JSON.stringify(
      turn > 1 ? { kind: 'final', answer: 'Done.' } : { kind: 'tool', name, args },
    );
  };
}

const ROLES = new Map<ChatRole, string>([
  [ChatRole.SYSTEM, 'system'],
  [ChatRole.USER, 'user'],
  [ChatRole.ASSISTANT, 'assistant'],
  [ChatRole.TOOL, 'tool'],
]);

/** The texts of the turns of a model call, with their roles. */
function turnsOf(world: World, call: number): string[] {
  const { messages = [] } = world.meter.requests[call] ?? {};
  return messages.flatMap(({ role, parts }) =>
    parts.map(({ kind }) => {
      const text = kind.case === 'toolResult' ? kind.value.content : kind.value;
      return `${ROLES.get(role)}: ${String(text)}`;
    }),
  );
}

describe('middleware of a module', () => {
  it('stops an agent with its reason (AG-9)', async () => {
    const manifest = { kind: REACT, chatMiddleware: use('stop_word', { word: 'secret' }) };
    const world = await start(() => 'It is a secret.', manifest);
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:stop_word');
    expect(world.supervisor.reports[0]?.detail).toBe('The answer contains the stop word.');
  });

  it.each([
    ['react', REACT],
    ['json-action', JSON_ACTION],
  ])(
    'changes the call and the result of a %s agent, and the call is reviewed (AG-9)',
    async (_, kind) => {
      const world = await start(callOnce(kind), { kind, functionMiddleware: use('as_user_7') });
      await world.until('COMPLETED');
      const [{ argumentsJson } = { argumentsJson: '' }] = world.gateway.requests;
      expect(JSON.parse(argumentsJson)).toEqual({ user_id: 7 });
      expect(turnsOf(world, 1).join()).toContain('"checked":true');
    },
  );

  it.each([
    ['react', REACT],
    ['json-action', JSON_ACTION],
  ])('answers the call of a %s agent without proposing it (AG-9)', async (_, kind) => {
    const world = await start(callOnce(kind), { kind, functionMiddleware: use('offline') });
    await world.until('COMPLETED');
    expect(world.gateway.executed).toEqual([]);
    expect(world.supervisor.decided).toHaveLength(1);
    expect(turnsOf(world, 1).join()).toContain('"offline":"get_refund_context"');
  });
});

describe('a pipeline of context strategies', () => {
  it('truncates tool results inside a sliding window (AG-8)', async () => {
    let turn = 0;
    const world = await start(
      () => {
        turn += 1;
        const args = { user_id: turn };
        return turn > 3 ? 'Done.' : { toolUses: [{ tool: 'get_refund_context', args }] };
      },
      {
        kind: REACT,
        context: {
          contextWindow: 120n,
          strategies: [...use('truncate', { max_characters: 10 }), ...use('sliding_window')],
        },
      },
    );
    await world.until('COMPLETED');
    const shown = turnsOf(world, 3);
    const results = shown.filter((line) => line.startsWith('tool:'));
    expect(results.length).toBeGreaterThan(1);
    expect(results.every((line) => line.includes('[cut: '))).toBe(true);
    // The message is outside the window, which contains only truncated results.
    expect(shown.some((line) => line.startsWith('user: '))).toBe(false);
  });

  it('includes strategies of modules, with their options (AG-8)', async () => {
    const strategies = [...use('shout', { suffix: '?' }), ...use('sliding_window')];
    const world = await start(() => 'Done.', { kind: REACT, context: { strategies } });
    await world.until('COMPLETED');
    expect(turnsOf(world, 0)).toContain('user: Refund the annual plan of user 42.?');
  });

  it('stops the agent when a strategy returns no conversation (AG-8)', async () => {
    const world = await start(() => 'Done.', { kind: REACT, context: { strategy: 'nothing' } });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:invalid_view');
  });
});

describe('a history provider of a module', () => {
  const manifest = {
    kind: REACT,
    history: { provider: 'documents' },
  };

  it('stores the turns of a run and shows them to the model in the next run (AG-8, SUP-2)', async () => {
    const world = await start(() => 'Done.', manifest);
    await world.until('COMPLETED');
    await world.deliver({ runId: 'run-2', goal: 'And now?', manifest });
    await world.until('COMPLETED', 'run-2');
    expect(turnsOf(world, 1).slice(1)).toEqual([
      'user: Refund the annual plan of user 42.',
      'assistant: Done.',
      'user: And now?',
    ]);
    const { db } = world.lastWorker.store;
    expect(await db.selectFrom('history').selectAll().execute()).toEqual([]);
  });

  it('is retried after a failure, without another model call (AG-8, RT-1)', async () => {
    failing.saves = 2;
    const world = await start(() => 'Done.', manifest);
    await world.until('COMPLETED');
    expect([...saved.values()].map((runs) => [...runs.keys()])).toEqual([[`${RUN}/refund-desk-1`]]);
    expect(world.meter.requests).toHaveLength(1);
  });

  for (const { failures, maxRetries, runs } of [
    { failures: 2, maxRetries: 3, runs: 1 },
    { failures: 100, maxRetries: 3, runs: 0 },
    { failures: 100, maxRetries: 0, runs: 0 },
  ]) {
    it(`is retried at most ${maxRetries} times after ${failures} failures when another process had the answer approved (AG-8, SUP-7)`, async () => {
      failing.saves = failures;
      const world = await World.start();
      world.supervisor.endings.set(RUN, { stopReason: 'success', answer: 'Done.' });
      const ended = new PreconditionError('RUN_ENDED', 'It has ended.', { stop_reason: 'success' });
      world.faults.failAt('before review op-0', ...Array.from({ length: 50 }, () => ended));
      const custom: AgentFactory = (_, id) => ({
        id,
        kind: 'custom',
        async run(ctx) {
          ctx.remember([{ role: 'assistant', text: 'Done.' }]);
          await ctx.reply('Done.');
        },
      });
      await world.startWorker(EXTENSIONS, { agents: { custom } });
      await world.deliver({
        from: 'parent-1',
        retention: HistoryRetention.PERMANENT,
        manifest: { ...manifest, kind: AgentKind.CUSTOM, limits: { maxRetries } },
      });
      const { epoch } = await world.until('COMPLETED');
      expect(epoch).toBe(1n);
      expect(saved.size).toBe(runs);
    });
  }

  it('is retried although the supervisor cancels the agent of the ended run (AG-8, SUP-7)', async () => {
    failing.saves = 1;
    const world = await World.start({ model: () => 'Done.' });
    const { instance: agentInstance } = AGENT;
    const end = { tenant: TENANT, runId: RUN, stopReason: 'success' };
    let ended: Promise<unknown> | undefined;
    world.supervisor.rule = (raw) => {
      ended = (async () => {
        const awaited = { ...end, requestId: 'await-end', agentInstance, awaitEnd: true };
        const { hasEnded } = await world.worker.cancel(awaited);
        if (!hasEnded) await world.worker.cancel({ ...end, requestId: 'cancel' });
      })();
      return approveAll(raw);
    };
    await world.startWorker({ ...EXTENSIONS, restartMs: 500 });
    await world.deliver({ manifest });
    await world.until('COMPLETED');
    await ended;
    await expect.poll(() => saved.size).toBe(1);
  });

  it('is logged with its error and the tenant when it fails permanently (AG-8, SYS-1)', async () => {
    failing.saves = 100;
    const lines: string[] = [];
    const logStream = { write: (line: string) => void lines.push(line) };
    const telemetry = createTelemetry({ service: 'agent-worker', logStream });
    const world = await World.start({ model: () => 'Done.' });
    world.supervisor.rule = approveAll;
    await world.startWorker(EXTENSIONS, { telemetry });
    await world.deliver({ manifest: { ...manifest, limits: { maxRetries: 0 } } });
    await world.until('COMPLETED');
    const logged = lines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === 'history not saved');
    const ids = { tenant: TENANT, run_id: RUN, agent: AGENT.instance };
    expect(logged).toMatchObject([ids]);
    expect(logged[0].err.stack).toContain('The provider is down.');
  });

  it('does not prevent the end of a run when it fails permanently (AG-8)', async () => {
    failing.saves = 100;
    const world = await start(() => 'Done.', manifest);
    await world.until('COMPLETED');
    expect(saved.size).toBe(0);
    expect(world.supervisor.endings.get(RUN)?.stopReason).toBe('success');
  });
});

describe('a worker', () => {
  it('does not start when a module does not exist, and the error names the module (AG-9, SYS-3)', async () => {
    const world = await World.start();
    await expect(world.startWorker({ agentModules: [moduleAt('missing')] })).rejects.toThrow(
      /^the module .*missing\.ts cannot be loaded/s,
    );
  });

  it('does not start with invalid definitions, and the error names all of them (AG-9, SYS-3)', async () => {
    const world = await World.start();
    const started = world.startWorker({ agentModules: [moduleAt('takes-built-in-name')] });
    await expect(started).rejects.toThrow('defines the middleware cache, which is built in');
    await expect(started).rejects.toThrow('"strategies", which is not a list of defineStrategy');
  });

  it.each([
    [
      { chatMiddleware: use('office_hours') },
      'middleware "office_hours" does not exist. Available middleware: ',
    ],
    [{ chatMiddleware: use('stop_word') }, "must have required property 'word'"],
    [{ context: { strategy: 'halve' } }, 'strategy "halve" does not exist. Available strategies: '],
    [{ history: { provider: 'mongo' } }, 'Available history providers: documents.'],
    [
      { context: { strategies: [...use('sliding_window'), ...use('summary')] } },
      'summary must precede sliding_window',
    ],
  ])('rejects the delivery of an agent with %j (AG-8, AG-9, SYS-3)', async (settings, message) => {
    await expect(start(() => 'Done.', { kind: REACT, ...settings })).rejects.toThrow(message);
  });
});
