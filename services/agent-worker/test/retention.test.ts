import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { expect, it } from 'vitest';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll, LEAD } from './team.ts';
import { World } from './world.ts';

const TABLES = ['journal', 'signals', 'inbox'] as const;
/**
 * Long enough to be stored as a payload. Both persons give the same answer, so that their journals share the payload.
 */
const LONG = 'x'.repeat(4_096);
const ANSWER = `Person-content ${LONG}`;

/** The lead asks each of two persons a question, and then answers. */
const model: FakeModel = (_, { messages }) => {
  if (messages.some(({ role }) => role === 3)) return 'Both answered.';
  const ask = (to: string) => ({ tool: `handoff_${to}`, args: { task: `Are you ${to}? ${LONG}` } });
  return { toolUses: [ask('reader'), ask('counter')] };
};

/** Instances that have rows in each table. */
async function instancesOf(world: World) {
  const { db } = world.lastWorker.store;
  const found: Record<string, string[]> = {};
  for (const table of TABLES) {
    const rows = await db.selectFrom(table).select('instance').distinct().execute();
    found[table] = rows.map(({ instance }) => instance).toSorted();
  }
  return found;
}

async function payloads(world: World): Promise<string[]> {
  const { db } = world.lastWorker.store;
  const rows = await db.selectFrom('payloads').select('content').execute();
  return rows.map(({ content }) => content);
}

async function logEntries(world: World): Promise<string[]> {
  const page = { tenant: TENANT, runId: RUN, pageSize: 10 };
  const { entries } = await world.worker.listLogEntries(page);
  return entries.map(({ agent }) => agent?.instance ?? '').toSorted();
}

/** Runs a lead that asks two persons; `kept` has retention PERMANENT, the other has the default. */
async function askTwoPersons(world: World, kept: string): Promise<void> {
  world.supervisor.rule = approveAll;
  world.supervisor.deliverChild = (child) =>
    world.deliver({
      ...child,
      manifest: { name: child.agent.name, kind: AgentKind.USER_PROXY, tools: [] },
      ...(child.agent.name === kept && { retention: HistoryRetention.PERMANENT }),
    });
  await world.deliver({ manifest: LEAD });
  for (const person of ['reader', 'counter']) {
    const { waitingFor } = await world.until('WAITING_FOR_INPUT', RUN, person);
    await world.worker.signal({
      requestId: `answer-${person}`,
      tenant: TENANT,
      runId: RUN,
      agentInstance: `${person}-1`,
      name: waitingFor[0] ?? '',
      payloadJson: JSON.stringify({ text: ANSWER }),
    });
  }
  await world.until('COMPLETED');
}

it('deletes the content of children with retention RUN at the end of a run that is kept (SUP-4)', async () => {
  const world = await World.start({ model });
  await world.startWorker();
  await askTwoPersons(world, 'counter');
  const all = [AGENT.instance, 'counter-1', 'reader-1'].toSorted();
  expect(await instancesOf(world)).toEqual({ journal: all, signals: all, inbox: all });
  expect(await logEntries(world)).toEqual(['counter-1', 'reader-1']);
  const before = await payloads(world);

  // The content of a child is kept after its end, until the end of the run.
  const order = { tenant: TENANT, runId: RUN, stopReason: 'success' };
  await world.worker.cancel({ ...order, requestId: 'end-reader', agentInstance: 'reader-1' });
  expect(await instancesOf(world)).toEqual({ journal: all, signals: all, inbox: all });
  const retention = HistoryRetention.PERMANENT;
  await world.worker.cancel({ ...order, requestId: 'end-run', retention });

  const left = [AGENT.instance, 'counter-1'].toSorted();
  expect(await instancesOf(world)).toEqual({ journal: left, signals: left, inbox: left });
  expect(await logEntries(world)).toEqual(['counter-1']);
  // The lead keeps the reply signal of the child, and the other child keeps the payload that both shared.
  const { db } = world.lastWorker.store;
  const replies = await db
    .selectFrom('signals')
    .select('payload')
    .where('instance', '=', AGENT.instance)
    .where('name', '=', 'reply:reader-1')
    .execute();
  expect(replies.map(({ payload }) => payload)).toEqual([
    expect.stringContaining('Person-content'),
  ]);
  const after = await payloads(world);
  expect(after.length).toBeLessThan(before.length);
  const journals = await db
    .selectFrom('journal')
    .select('payload_digest')
    .where('payload_digest', 'is not', null)
    .execute();
  const used = new Set(journals.map(({ payload_digest: digest }) => digest));
  expect(used.size).toBe(after.length);
});
