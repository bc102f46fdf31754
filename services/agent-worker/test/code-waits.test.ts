import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { AgentWorkerConfig } from '../src/index.ts';
import { AGENT, type ManifestFields, RUN, TENANT } from './delivery.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const CUSTOM: Partial<ManifestFields> = { kind: AgentKind.CUSTOM };
const WAIT = 'new_source_item';

/** A module of an agent that prompts, waits and prompts again. */
const TWO_PROMPTS = moduleWith('agents', "await agent.prompt({ text: 'first' });");

/** Returns the source of a module whose agent begins with `first`. */
function moduleWith(list: string, first: string, name: string = AGENT.name): string {
  return `export const ${list} = [{ name: '${name}', async run(agent) {
    ${first}
    await agent.sleepUntilSignal('${WAIT}');
    return agent.prompt({ text: 'second' });
  } }];`;
}

function settings(source: string): Partial<AgentWorkerConfig> {
  const dir = mkdtempSync(join(tmpdir(), 'writ-code-waits-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'module.mjs');
  writeFileSync(file, source);
  return { agentModules: [file] };
}

/** Runs an agent under the old code until it waits, and wakes it under the new code. */
async function upgrade(
  before: Partial<AgentWorkerConfig>,
  after: Partial<AgentWorkerConfig>,
  manifest = CUSTOM,
): Promise<World> {
  const world = await World.start({ model: () => 'Yes.', inFile: true });
  world.supervisor.rule = approveAll;
  const old = await world.startWorker(before);
  await world.deliver({ manifest });
  await world.until('SUSPENDED');
  await old.stop();
  await world.startWorker(after);
  const to = { tenant: TENANT, runId: RUN, agentInstance: AGENT.instance };
  await world.worker.signal({ ...to, requestId: 'wake', name: WAIT, payloadJson: '{}' });
  return world;
}

/** Replaces the latest worker with a worker that has this code. */
async function replace(world: World, code: Partial<AgentWorkerConfig>): Promise<void> {
  await world.lastWorker.stop();
  await world.startWorker(code);
}

it('continues a diverged agent when a worker has its original code again (RT-1, BD-6)', async () => {
  const before = settings(TWO_PROMPTS);
  const world = await upgrade(before, settings(moduleWith('agents', "agent.log('new');")));
  const { wait, detail } = await world.untilCodeWait();
  expect(wait).toBe('code:journal_divergence:op-0');
  expect(detail).toContain('recorded llm');
  expect(world.supervisor.reports).toEqual([]);
  await replace(world, before);
  await world.until('COMPLETED');
  expect(world.meter.paid).toHaveLength(2);
});

it('reports the wait for matching code to spawn-budget (EM-1, BD-6)', async () => {
  const world = await upgrade(
    settings(TWO_PROMPTS),
    settings(moduleWith('agents', "agent.log('new');")),
  );
  await world.untilCodeWait();
  await vi.waitFor(() =>
    expect(world.slots.waits).toContain(`${RUN} code:journal_divergence:op-0`),
  );
});

it('rejects further effects of an agent that catches the divergence (RT-1, BD-6)', async () => {
  const caught = `try { agent.log('new'); } catch {}
    try { await agent.prompt({ text: 'another' }); } catch {}
    return;`;
  const world = await upgrade(settings(TWO_PROMPTS), settings(moduleWith('agents', caught)));
  expect((await world.untilCodeWait()).wait).toBe('code:journal_divergence:op-0');
  expect(world.meter.paid).toHaveLength(1);
  expect(world.supervisor.reports).toEqual([]);
});

it('parks an agent when a service has recorded a different request under the same call_id (EM-7, BD-6)', async () => {
  const world = await World.start({ model: () => 'Yes.', inFile: true });
  world.supervisor.rule = approveAll;
  const before = settings(TWO_PROMPTS);
  const old = await world.startWorker(before);
  // The worker stops before it receives the answer that the meter has recorded.
  const answered = world.faults.silenceAt('after generate op-0');
  await world.deliver({ manifest: CUSTOM });
  await answered;
  await old.stop();
  await world.startWorker(settings(moduleWith('agents', "await agent.prompt({ text: 'other' });")));
  expect((await world.untilCodeWait()).wait).toBe('code:journal_divergence:op-0');
  expect(world.supervisor.reports).toEqual([]);
  await replace(world, before);
  await world.until('SUSPENDED');
  expect(world.meter.paid).toEqual(['op-0']);
});

it('parks an agent that no module defines any more (AG-1, BD-6)', async () => {
  const before = settings(TWO_PROMPTS);
  const world = await upgrade(before, {});
  const { wait, detail } = await world.untilCodeWait();
  expect(wait).toBe(`code:agent_missing:${AGENT.name}`);
  expect(detail).toContain(`No module of this worker defines agent "${AGENT.name}"`);
  await replace(world, before);
  await world.until('COMPLETED');
});

it('parks an agent whose middleware the worker lacks (AG-9, BD-6)', async () => {
  const guard = `export const middleware = [{ name: 'guard', chat: () => ({
    process: (context, next) => next(context),
  }) }];`;
  const before = settings(`${TWO_PROMPTS}\n${guard}`);
  const world = await upgrade(before, settings(TWO_PROMPTS), {
    ...CUSTOM,
    chatMiddleware: [{ name: 'guard' }],
  });
  const { wait, detail } = await world.untilCodeWait();
  expect(wait).toBe('code:setting_rejected:UNKNOWN_MIDDLEWARE');
  expect(detail).toContain('middleware "guard" does not exist');
  await replace(world, before);
  await world.until('COMPLETED');
});
