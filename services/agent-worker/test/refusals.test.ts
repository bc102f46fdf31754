import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentKind, RefusalHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WorkerStore } from '../src/store/worker-store.ts';
import { AGENT, type ManifestFields } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const REFUND = { tool: 'issue_refund', args: { amount_usd: 9_000 } };
const READ = { tool: 'get_refund_context', args: { user_id: 42 } };
const REACT: Partial<ManifestFields> = { kind: AgentKind.REACT, onRefusal: RefusalHandling.STOP };

/** A custom agent that calls the tools that the model requests in one turn. */
const CUSTOM = `export const agents = [{ name: '${AGENT.name}', async run(agent, { goal }) {
  const answer = await agent.llm({ turns: [{ role: 'user', text: goal }], tools: await agent.tools() });
  await agent.useTools(answer);
  return 'Done.';
} }];`;

/** Starts a world whose model requests `toolUses` in each turn, and whose supervisor blocks refunds. */
async function startWorld(
  toolUses: readonly (typeof REFUND | typeof READ | Handoff)[],
  child: () => Promise<string> = async () => 'Done.',
): Promise<World> {
  const model: FakeModel = async (_, __, agent) =>
    agent === AGENT.instance ? { toolUses } : await child();
  const world = await World.start({ model });
  world.supervisor.rule = (raw) => ({
    ...approveAll(raw),
    ...(raw.includes('issue_refund') && { verdict: 'block', reason: 'not_yours' }),
  });
  return world;
}

interface Handoff {
  readonly tool: string;
  readonly args: { readonly task: string };
}

/**
 * Sets `on_refusal: stop` in the stored manifest. The journal then contains proposals after the rejected call, like the
 * journals of workers that proposed all calls of a turn before they stopped the agent.
 */
async function stopAtRefusals(store: WorkerStore): Promise<void> {
  await store.transaction(async (trx) => {
    const of = trx.selectFrom('agents').select('manifest').where('instance', '=', AGENT.instance);
    const { manifest } = await of.executeTakeFirstOrThrow();
    const stopped = JSON.stringify({ ...JSON.parse(manifest), onRefusal: 'stop' });
    const update = trx.updateTable('agents').set({ manifest: stopped });
    await update.where('instance', '=', AGENT.instance).execute();
  });
}

describe('an agent that a rejected call stops', () => {
  it('proposes no later call of the same turn (AG-10)', async () => {
    const world = await startWorld([REFUND, READ]);
    await world.startWorker();
    await world.deliver({ manifest: REACT });
    const { stopReason } = await world.until('BLOCKED');
    expect(stopReason).toBe('supervisor_block:not_yours');
    expect(world.supervisor.decided).toEqual(['op-3 block issue_refund']);
    expect(world.gateway.executed).toEqual([]);
  });

  it('proposes no call after the one that exceeds max_refusals (AG-10)', async () => {
    const world = await startWorld([REFUND, REFUND, READ]);
    await world.startWorker();
    const onRefusal = RefusalHandling.TELL_MODEL;
    await world.deliver({ manifest: { ...REACT, onRefusal, limits: { maxRefusals: 1 } } });
    await world.until('BLOCKED');
    expect(world.supervisor.decided).toHaveLength(2);
    expect(world.gateway.executed).toEqual([]);
  });

  it('proposes no handoff of the same turn (AG-3, AG-10)', async () => {
    const world = await startWorld([
      { tool: 'handoff_reader', args: { task: 'Read.' } },
      REFUND,
      READ,
    ]);
    await world.startWorker();
    world.withChildren({ reader: { kind: AgentKind.REACT, tools: [] } });
    await world.deliver({ manifest: { ...REACT, subAgents: [{ name: 'reader' }] } });
    await world.until('BLOCKED');
    expect(world.supervisor.decided).toEqual(['op-3 block issue_refund']);
  });

  it('proposes no later call of useTools (AG-1, AG-10)', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'writ-agents-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'agents.mjs');
    writeFileSync(file, CUSTOM);
    const world = await startWorld([REFUND, READ]);
    await world.startWorker({ agentModules: [file] });
    await world.deliver({ manifest: { ...REACT, kind: AgentKind.CUSTOM } });
    await world.until('BLOCKED');
    expect(world.supervisor.decided).toHaveLength(1);
    expect(world.gateway.executed).toEqual([]);
  });

  it('replays the later calls that its journal contains, and proposes no others (AG-10, RT-1, BD-6)', async () => {
    const world = await startWorld([REFUND, READ, READ]);
    const { rule } = world.supervisor;
    world.supervisor.rule = (raw, executed) => ({
      ...rule(raw, executed),
      ...(raw.includes('get_refund_context') && { verdict: 'escalate' }),
    });
    const { store } = await world.startWorker();
    await world.deliver({ manifest: { ...REACT, onRefusal: RefusalHandling.TELL_MODEL } });
    const { waitingFor } = await world.until('SUSPENDED');
    expect(waitingFor).toEqual(['approval:op-4']);
    await stopAtRefusals(store);
    await world.approve('op-4', { args: {} });
    const { stopReason } = await world.until('BLOCKED');
    expect(stopReason).toBe('supervisor_block:not_yours');
    expect(world.gateway.executed).toEqual(['op-4 get_refund_context']);
    expect(world.supervisor.decided).toEqual([
      'op-3 block issue_refund',
      'op-4 escalate get_refund_context',
    ]);
    expect(world.supervisor.receipts).toHaveLength(1);
  });

  it('replays the handoffs that its journal contains (AG-3, AG-10, RT-1, BD-6)', async () => {
    const { promise, resolve: answer } = Promise.withResolvers<string>();
    const handoff = { tool: 'handoff_reader', args: { task: 'Read.' } };
    const world = await startWorld([handoff, REFUND], () => promise);
    const { store } = await world.startWorker();
    world.withChildren({ reader: { kind: AgentKind.REACT, tools: [] } });
    const subAgents = [{ name: 'reader' }];
    const onRefusal = RefusalHandling.TELL_MODEL;
    await world.deliver({ manifest: { ...REACT, onRefusal, subAgents } });
    await world.until('SUSPENDED');
    await stopAtRefusals(store);
    answer('Read it.');
    await world.until('BLOCKED');
    expect(world.supervisor.ended).toEqual(['reader-1 replied']);
    expect(world.supervisor.reports).toHaveLength(1);
  });
});
