import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentKind, PreemptionHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AGENT, type ManifestFields, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const CUSTOM: Partial<ManifestFields> = {
  kind: AgentKind.CUSTOM,
  subAgents: [{ name: 'reader' }, { name: 'counter' }],
};
const WAIT = 'new_source_item';

/** Writes a module with these agents; each is the source of a definition without its name. */
function moduleOf(...definitions: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-agents-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'agents.mjs');
  const agents = definitions.map((source) => `{ name: '${AGENT.name}', ${source} }`);
  writeFileSync(file, `export const agents = [${agents.join(', ')}];`);
  return file;
}

async function startWorld(model: FakeModel): Promise<World> {
  const world = await World.start({ model, inFile: true });
  world.supervisor.rule = approveAll;
  return world;
}

function answerOf(world: World, runId = RUN): string | undefined {
  return world.supervisor.endings.get(runId)?.answer;
}

async function wake(world: World, runId = RUN): Promise<void> {
  const to = { tenant: TENANT, runId, agentInstance: AGENT.instance };
  await world.worker.signal({ ...to, requestId: `wake-${runId}`, name: WAIT, payloadJson: '{}' });
}

const LOOP = `async run(agent, { goal }) {
  const earlier = await agent.recall();
  const turns = [...earlier, { role: 'user', text: goal }];
  const tools = await agent.tools();
  for (let step = 1; step <= 3; step += 1) {
    const answer = await agent.step(step, () => agent.llm({ turns, tools }));
    if (!answer.ok) return agent.fail('no_answer', answer.message);
    turns.push(answer.turn);
    if (answer.toolUses.length === 0) {
      agent.remember(turns.slice(earlier.length));
      const replied = await agent.reply(answer.text);
      if (replied.ok) return;
      turns.push({ role: 'user', text: 'Rejected: ' + replied.error });
    } else turns.push(await agent.useTools(answer));
  }
  return agent.fail('too_long', 'There is no answer.');
}`;

describe('an agent in TypeScript', () => {
  it('converses over several turns with tools, and recalls the session in its next run (RT-1, AG-1, AG-8)', async () => {
    const roles: string[] = [];
    const world = await startWorld((_, { messages, tools }) => {
      roles.push(messages.map(({ role }) => role).join(' '));
      expect(tools.map(({ name }) => name)).toContain('get_refund_context');
      const last = messages.at(-1)?.parts[0]?.kind;
      if (last?.case === 'toolResult') return `Found: ${last.value.content}`;
      return { toolUses: [{ tool: 'get_refund_context', args: { user_id: 42 } }] };
    });
    await world.startWorker({ agentModules: [moduleOf(LOOP)] });
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    expect(answerOf(world)).toMatch(/^Found: \{.*Anna/);
    expect(world.gateway.executed).toHaveLength(1);
    expect(world.supervisor.requests[0]?.modelCallId).not.toBe('');
    await world.deliver({ runId: 'run-2', manifest: CUSTOM });
    await world.until('COMPLETED', 'run-2');
    // system 1, user 2, assistant 3, tool 4
    expect(roles).toEqual(['1 2', '1 2 3 4', '1 2 3 4 3 2', '1 2 3 4 3 2 3 4']);
  });

  it('recalls no turns in a run whose retention is not PERMANENT (SUP-4, AG-8)', async () => {
    const world = await startWorld(() => 'unused');
    const source = `async run(agent, { goal }) {
      const earlier = await agent.recall();
      agent.remember([{ role: 'user', text: goal }]);
      return 'Recalled: ' + earlier.length;
    }`;
    await world.startWorker({ agentModules: [moduleOf(source)] });
    const runs = { 'run-2': 'PERMANENT', 'run-3': 'NONE', 'run-4': 'RUN' } as const;
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    for (const [runId, retention] of Object.entries(runs)) {
      await world.deliver({ runId, manifest: CUSTOM, retention: HistoryRetention[retention] });
      await world.until('COMPLETED', runId);
    }
    expect(Object.keys(runs).map((runId) => answerOf(world, runId))).toEqual([
      'Recalled: 1',
      'Recalled: 0',
      'Recalled: 0',
    ]);
  });

  it('receives the reason why its answer was rejected, and can correct it (AG-10, SV-1)', async () => {
    const asked: string[] = [];
    const world = await startWorld((_, { messages }) => {
      const last = messages.at(-1)?.parts[0]?.kind;
      asked.push(last?.case === 'text' ? last.value : '');
      return asked.length === 1 ? 'Bad.' : 'Good.';
    });
    world.supervisor.rule = (raw) => ({
      ...approveAll(raw),
      ...(raw.includes('Bad.') && { verdict: 'block', reason: 'impolite' }),
    });
    await world.startWorker({ agentModules: [moduleOf(LOOP)] });
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    expect(asked[1]).toBe('Rejected: supervisor_block:impolite');
    expect(answerOf(world)).toBe('Good.');
  });

  it('spawns children, continues its own work, and asks them later (AG-3, RT-1)', async () => {
    const world = await startWorld((_, __, instance) => `${instance.split('-')[0]} is done`);
    const source = `async run(agent) {
      const spawned = [await agent.spawn('reader', 'Read.'), await agent.spawn('counter', 'Count.')];
      const own = await agent.prompt({ text: 'Think.' });
      const replies = [];
      for (const { child } of spawned) replies.push((await agent.ask(child, 60_000)).text);
      return own + ': ' + replies.join(' and ');
    }`;
    await world.startWorker({ agentModules: [moduleOf(source)] });
    const child = { kind: AgentKind.REACT, tools: [] };
    world.withChildren({ reader: child, counter: child });
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('refund is done: reader is done and counter is done');
    expect(world.supervisor.ended.toSorted()).toEqual(['counter-1 replied', 'reader-1 replied']);
  });

  it('resumes from its checkpoint, with its state and items (RT-1)', async () => {
    const world = await startWorld((_, { callId }) => `answer to ${callId}`);
    const source = `async run(agent) {
      const restored = await agent.restore();
      const notes = [...(restored?.items ?? [])];
      for (let step = (restored?.state.step ?? 0) + 1; step <= 4; step += 1) {
        notes.push(await agent.step(step, () => agent.prompt({ text: 'Step ' + step })));
        agent.checkpoint({ state: { step }, added: notes.slice(-1) });
        if (step === 2) await agent.sleepUntilSignal('${WAIT}');
      }
      return (restored === undefined ? 'no' : restored.state.step) + ': ' + notes.length;
    }`;
    const worker = await world.startWorker({ agentModules: [moduleOf(source)] });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    const replayed = await worker.store.db
      .selectFrom('journal')
      .select('kind')
      .where('segment', '=', 3)
      .execute();
    expect(replayed).toEqual([]);
    await wake(world);
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('2: 4');
    expect(world.meter.paid).toHaveLength(4);
  });

  it('keeps history turns that it set before the checkpoint from which it resumes (RT-1, AG-8)', async () => {
    const world = await startWorld(() => 'unused');
    const source = `async run(agent, { goal }) {
      const restored = await agent.restore();
      if (restored === undefined) {
        agent.remember([{ role: 'user', text: goal }]);
        agent.checkpoint({ state: 'waiting' });
      }
      const earlier = await agent.recall();
      await agent.sleepUntilSignal('${WAIT}');
      return earlier.map(({ text }) => text).join();
    }`;
    await world.startWorker({ agentModules: [moduleOf(source)] });
    for (const runId of [RUN, 'run-2']) {
      await world.deliver({ runId, manifest: CUSTOM });
      await world.until('SUSPENDED', runId);
      await wake(world, runId);
      await world.until('COMPLETED', runId);
    }
    expect(answerOf(world, 'run-2')).toBe('Refund the annual plan of user 42.');
  });

  it('proposes a draft that it set before the checkpoint from which it resumes (RT-1, SB-4)', async () => {
    const world = await startWorld(() => 'unused');
    const source = `async run(agent) {
      const restored = await agent.restore();
      if (restored === undefined) {
        agent.draft('Half of the answer.');
        agent.checkpoint({ state: 'waiting' });
      }
      await agent.sleepUntilSignal('${WAIT}');
      return await agent.prompt({ text: 'Think.' });
    }`;
    await world.startWorker({ agentModules: [moduleOf(source)] });
    await world.deliver({ manifest: { ...CUSTOM, onPreempt: PreemptionHandling.PARTIAL } });
    await world.until('SUSPENDED');
    const { reached, release } = world.faults.holdAt('before generate op-1');
    await wake(world);
    await reached;
    const before = world.slots.renewals.length;
    world.slots.set(RUN, 'PAUSED', { hint: true });
    // Renewals are serialized: the worker processed the result of the first renewal before it sent the second.
    const after = () => world.slots.renewals.slice(before).filter((line) => line.includes(RUN));
    await expect.poll(() => after().length).toBeGreaterThan(1);
    release();
    await world.until('PAUSED');
    expect(answerOf(world)).toBe('Half of the answer.');
  });
});

describe('an agent in TypeScript that fails', () => {
  it.each([
    ['a detail that is too long', `agent.fail('x', 'ä'.repeat(10_000))`, 'error:x', 8_192],
    [
      'a reason that is too long',
      `agent.fail('x'.repeat(600), 'y')`,
      `error:${'x'.repeat(506)}`,
      1,
    ],
    ['an empty reason', `agent.fail('', 'y')`, 'error:invalid_reason', 1],
  ])('ends with %s (AG-7, BD-3)', async (_, fails, expected, length) => {
    const world = await startWorld(() => 'unused');
    await world.startWorker({ agentModules: [moduleOf(`async run(agent) { ${fails}; }`)] });
    await world.deliver({ manifest: CUSTOM });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe(expected);
    expect(world.supervisor.reports.map(({ detail }) => detail.length)).toEqual([length]);
  });

  it('ends with the NUL characters in its reason and detail replaced (AG-7, BD-3)', async () => {
    const world = await startWorld(() => 'unused');
    const source = String.raw`async run(agent) { agent.fail('x\0', 'y\0z'); }`;
    await world.startWorker({ agentModules: [moduleOf(source)] });
    await world.deliver({ manifest: CUSTOM });
    expect((await world.until('ERROR')).stopReason).toBe('error:x\ufffd');
    expect(world.supervisor.reports).toMatchObject([{ detail: 'y\ufffdz' }]);
  });
});

/** Returns an agent that waits between two prompts; the second prompt differs between versions. */
function versioned(version: string): string {
  return `version: '${version}', async run(agent) {
    const first = await agent.prompt({ text: 'first' });
    ${version === '2' ? "await agent.prompt({ text: 'an additional one' });" : ''}
    await agent.sleepUntilSignal('${WAIT}');
    return 'version ${version}';
  }`;
}

describe('new code of an agent in TypeScript', () => {
  it('leaves running agents on the version with which they started (RT-1)', async () => {
    const world = await startWorld(() => 'Yes.');
    const old = await world.startWorker({ agentModules: [moduleOf(versioned('1'))] });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await old.stop();
    await world.startWorker({ agentModules: [moduleOf(versioned('2'), versioned('1'))] });
    await wake(world);
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('version 1');
    await world.deliver({ runId: 'run-2', manifest: CUSTOM });
    await world.until('SUSPENDED', 'run-2');
    await wake(world, 'run-2');
    await world.until('COMPLETED', 'run-2');
    expect(answerOf(world, 'run-2')).toBe('version 2');
  });

  it('leaves running agents to workers that have their version (RT-1)', async () => {
    const world = await startWorld(() => 'Yes.');
    const old = await world.startWorker({ agentModules: [moduleOf(versioned('1'))] });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await old.stop();
    const next = await world.startWorker({ agentModules: [moduleOf(versioned('2'))] });
    await wake(world);
    await world.until('PARKED');
    expect(world.supervisor.reports).toEqual([]);
    await next.stop();
    await world.startWorker({ agentModules: [moduleOf(versioned('1'))] });
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('version 1');
  });

  it('is rejected when it repeats a version or is defined in another module (RT-1)', async () => {
    const world = await startWorld(() => 'Yes.');
    const twice = moduleOf(versioned('1'), versioned('1'));
    await expect(world.startWorker({ agentModules: [twice] })).rejects.toThrow(
      `defines version "1" of the agent ${AGENT.name} twice.`,
    );
    const modules = [moduleOf(versioned('2')), moduleOf(versioned('1'))];
    await expect(world.startWorker({ agentModules: modules })).rejects.toThrow(
      'which another module or createAgent already defines.',
    );
  });
});
