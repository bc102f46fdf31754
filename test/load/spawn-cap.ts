import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { contractPriority } from '@writ/identity';
import { Priority } from '@writ/kernel';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { type Caller, startCaller } from './caller.ts';
import { SERVICE_MAINS, startProgram } from './program.ts';
import type { SpawnOutcome, SpawnRequest } from './spawn-caller.ts';

const TENANT = 'acme';
const MAX_AGENTS = 20;
const CLIENTS = 4;

interface Processes {
  readonly supervisor: KeyPeer;
  readonly address: string;
  readonly callers: readonly Caller[];
}

/**
 * Makes concurrent acquires from four client processes with max_agents 20 (SB-2, SB-6). Asserts that 19 acquires of
 * equal priority are granted, because the root also holds a slot; and that, with acquires of HIGH and LOW priority, the
 * cap is never exceeded and each pause has one beneficiary.
 */
export async function spawnCap({ acquires }: { readonly acquires: number }) {
  const stack = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(join(tmpdir(), 'writ-load-'));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const supervisor = await startKeyPeer('supervisor');
    stack.defer(() => supervisor.close());
    const [program, ...callers] = await Promise.all([
      startProgram(SERVICE_MAINS['spawn-budget'], {
        WRIT_DATA: dir,
        WRIT_SPAWN_BUDGET_PORT: '0',
        WRIT_SUPERVISOR_ADDRESS: supervisor.address,
        WRIT_LOG_LEVEL: 'silent',
      }),
      ...Array.from({ length: CLIENTS }, () => startCaller('spawn-caller.ts')),
    ]);
    stack.defer(() => program.kill());
    for (const caller of callers) stack.defer(() => caller.kill());
    const harness = { supervisor, address: program.address, callers };
    const alike = await race(harness, 'alike', acquires, () => Priority.NORMAL);
    assert.equal(alike.granted.length, MAX_AGENTS - 1);
    assert.equal(alike.pool.totalPauses, 0);
    const mixed = await race(harness, 'mixed', acquires, (index) =>
      index % 10 === 0 ? Priority.HIGH : Priority.LOW,
    );
    const pauses = checkPauses(mixed);
    return {
      acquires,
      'granted with equal priority': alike.granted.length,
      'granted with HIGH among LOW': mixed.granted.length,
      'paused for a higher priority': pauses.length,
      beneficiaries: new Set(pauses.map(({ beneficiary }) => beneficiary)).size,
      'most slots held at a time': Math.max(alike.mostHeld, mixed.mostHeld),
    };
  } finally {
    await stack.disposeAsync();
  }
}

type Race = Awaited<ReturnType<typeof race>>;

async function race(
  { supervisor, address, callers }: Processes,
  runId: string,
  acquires: number,
  priorityOf: (index: number) => Priority,
) {
  const client = supervisor.client(SpawnBudgetService, { audience: 'spawn-budget', address });
  const run = { tenant: TENANT, runId };
  await client.openPool({
    ...run,
    requestId: 'open',
    root: { name: 'lead', instance: 'root' },
    priority: contractPriority(Priority.NORMAL),
    budget: { maxAgents: MAX_AGENTS },
  });
  const children = Array.from({ length: acquires }, (_, index) => ({
    instance: `child-${index}`,
    priority: priorityOf(index),
  }));
  const serviceToken = await supervisor.serviceToken('spawn-budget')();
  const request = { address, serviceToken, ...run };
  const answers = callers.map(
    (caller, turn) =>
      caller.send({
        ...request,
        children: children.filter((_, index) => index % CLIENTS === turn),
      } satisfies SpawnRequest) as Promise<SpawnOutcome[] | undefined>,
  );
  let racing = true;
  let mostHeld = 0;
  const polling = (async () => {
    while (racing) {
      const { pool } = await client.getPool(run);
      mostHeld = Math.max(mostHeld, pool?.held ?? 0);
      assert.ok(mostHeld <= MAX_AGENTS, `${mostHeld} agents hold a slot.`);
    }
  })();
  const outcomes = (await Promise.all(answers)).flatMap((answer) => answer ?? []);
  racing = false;
  await polling;
  assert.equal(outcomes.length, acquires, 'A client died.');
  const granted = outcomes.filter(({ reason }) => reason === '');
  const refusals = new Set(outcomes.map(({ reason }) => reason).filter(Boolean));
  assert.deepEqual([...refusals], ['BUDGET_EXHAUSTED']);
  const { pool } = await client.getPool(run);
  assert.ok(pool !== undefined);
  assert.equal(pool.held, MAX_AGENTS);
  assert.equal(pool.totalSpawns, granted.length);
  assert.equal(pool.totalRefusals, acquires - granted.length);
  const high = children.filter(({ priority }) => priority === Priority.HIGH).length;
  return { granted, pool, mostHeld, requested: { high } };
}

/** Checks that each pause has one LOW victim and one beneficiary; returns the pauses. */
function checkPauses({ granted, pool, requested }: Race) {
  const pauses = granted.flatMap(({ instance, paused }) => {
    assert.ok(paused.length <= 1, `${instance} paused more than one agent.`);
    for (const { beneficiary } of paused) assert.equal(beneficiary, instance);
    return paused;
  });
  assert.ok(pauses.length > 0, 'No agent was paused.');
  assert.equal(new Set(pauses.map(({ victim }) => victim)).size, pauses.length);
  assert.equal(pool.totalPauses, pauses.length);
  const weights = new Map(granted.map(({ instance, priority }) => [instance, priority]));
  for (const { victim } of pauses) assert.equal(weights.get(victim), Priority.LOW);
  const holders = pool.holders.map(({ agent }) => agent?.instance ?? '');
  const high = holders.filter((instance) => weights.get(instance) === Priority.HIGH);
  assert.equal(
    high.length,
    Math.min(MAX_AGENTS - 1, requested.high),
    'LOW kept a slot that HIGH requested.',
  );
  assert.deepEqual(
    new Set(pool.paused.map(({ agent }) => agent?.instance)),
    new Set(pauses.map(({ victim }) => victim)),
  );
  return pauses;
}
