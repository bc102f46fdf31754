import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { NotFoundError } from '@writ/kernel';
import type { OrderHarness, OrderRun } from './order-run.ts';

/** Checks that a run completed, that each order was carried out once and that no resource leaked. */
export async function assertCompleted(
  { client, worker, slots, tabs }: OrderHarness,
  dataDir: string,
  { name, runId }: OrderRun,
): Promise<void> {
  const { run } = await client.runs.getRun({ runId });
  assert.equal(run?.result?.stopReason, 'success', name);

  const agents = worker.delivered(runId);
  assert.deepEqual(agents.map((agent) => agent.name).sort(), ['lead', 'scout'], name);
  const { pool } = await slots.getPool({ tenant: 'default', runId });
  assert.equal(pool?.totalSpawns, 1, name);
  await assertNothingHeld({ worker, slots, tabs }, runId);

  const events = await Array.fromAsync(client.runs.watchRun({ runId }));
  const count = (type: HookEventType) =>
    events.filter(({ event }) => event?.entry.case === 'hook' && event.entry.value.type === type)
      .length;
  const { RUN_START, HANDOFF, APPROVAL_DECIDED, RUN_END } = HookEventType;
  for (const type of [HANDOFF, APPROVAL_DECIDED]) {
    assert.equal(count(type), 1, `${name}: events of type ${type}`);
  }
  // The supervisor publishes one event of each of these types for each agent.
  for (const type of [RUN_START, RUN_END]) {
    assert.equal(count(type), agents.length, `${name}: events of type ${type}`);
  }
  assert.deepEqual(ordersOf(dataDir, runId), ORDERS, name);
}

/** Checks that a run that was cancelled during setup released every resource. */
export async function assertReleased(
  harness: OrderHarness,
  dataDir: string,
  { name, runId }: OrderRun,
): Promise<void> {
  assert.ok(harness.worker.delivered(runId).length <= 2, name);
  await assertNothingHeld(harness, runId);
  for (const { kind, state } of ordersOf(dataDir, runId)) {
    assert.equal(state, 'done', `${name}: ${kind}`);
  }
}

async function assertNothingHeld(
  { worker, slots, tabs }: Pick<OrderHarness, 'worker' | 'slots' | 'tabs'>,
  runId: string,
): Promise<void> {
  // A run that was cancelled before its pool was opened has no pool.
  const pool = await ignoreNotFound(slots.getPool({ tenant: 'default', runId }));
  assert.notEqual(pool?.pool?.closed, false, runId);
  assert.deepEqual(pool?.pool?.waiting ?? [], [], runId);
  for (const { instance, state } of worker.delivered(runId)) {
    assert.match(state, /COMPLETED|CANCELLED/, instance);
    const tab = { tenant: 'default', runId, agentInstance: instance };
    const account = (await tabs.getTab({ tab })).tab;
    assert.equal(account?.state, TabState.CLOSED, instance);
    for (const { reservedTokens, reservedCostNanoUsd, reservedTurns } of account?.levels ?? []) {
      assert.deepEqual([reservedTokens, reservedCostNanoUsd, reservedTurns], [0n, 0n, 0n]);
    }
  }
}

async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

const ORDERS = ['end_child', 'end_run', 'spawn_child', 'start_run', 'wake_agent'].map((kind) => ({
  kind,
  state: 'done',
}));

function ordersOf(dataDir: string, runId: string) {
  const database = new DatabaseSync(join(dataDir, 'supervisor.db'), { readOnly: true });
  try {
    const rows = database
      .prepare('SELECT kind, state FROM orders WHERE run_id = ? ORDER BY kind')
      .all(runId);
    return rows.map((row) => ({ ...row }));
  } finally {
    database.close();
  }
}
