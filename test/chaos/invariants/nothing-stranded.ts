import type { DistributedPlatform, Row } from '@writ/testing/distributed';

/** States of a run in which no agent is working. */
const WAITING = ['SUSPENDED', 'WAITING_FOR_INPUT'];

/** Resources that a run can hold: label, service, and a query for the keys of the runs that hold the resource. */
const HELD = [
  ['slot', 'spawn-budget', "select tenant, run_id from members where state = 'active'"],
  ['pool', 'spawn-budget', 'select tenant, run_id from pools where closed_at is null'],
  ['tab', 'execution-meter', 'select tenant, run_id from tabs where closed_at is null'],
  [
    'reservation',
    'execution-meter',
    `select split_part(substr(id, 5), '/', 1) as tenant, split_part(substr(id, 5), '/', 2) as run_id from balances
     where id like 'run:%' and (reserved_tokens <> 0 or reserved_cost <> 0 or reserved_turns <> 0)`,
  ],
  [
    'lease',
    'agent-worker',
    'select tenant, run_id from agents where ended_at is null and lease_expires_at is not null',
  ],
  [
    'writ',
    'supervisor',
    `select d.tenant, d.run_id from decisions d left join receipts c on c.tenant = d.tenant and c.run_id = d.run_id
       and c.instance = d.instance and c.call_id = d.call_id
     where d.writ_count > 0 and c.call_id is null`,
  ],
  ['order', 'supervisor', "select tenant, run_id from orders where state = 'open'"],
] as const;

/**
 * Returns one line for each run that has not ended and holds resources without waiting for a person, a signal or a
 * timer (BD-3); empty when no run is stranded.
 */
export async function findStranded(platform: DistributedPlatform): Promise<string[]> {
  const open = await platform.rows(
    'supervisor',
    `select tenant, run_id, state, (select count(*) from approvals a where a.tenant = runs.tenant
       and a.run_id = runs.run_id and a.state = 'pending') as pending
     from runs where ended_at is null`,
  );
  const agents = await platform.rows(
    'agent-worker',
    'select tenant, run_id, instance, state, waiting_for, wake_at, lease_owner from agents where ended_at is null',
  );
  const held = await heldByRun(platform);
  return open.flatMap((run) => {
    const own = agents.filter((agent) => keyOf(agent) === keyOf(run));
    const holds = held.get(keyOf(run)) ?? [];
    if (holds.length === 0 || waits(run, own)) return [];
    const states = own.map(
      (agent) => `${agent.instance} ${agent.state} ${agent.waiting_for} ${agent.lease_owner ?? ''}`,
    );
    return [`${run.run_id} ${run.state} holds ${holds.join(', ')}: ${states.join('; ')}`];
  });
}

async function heldByRun(platform: DistributedPlatform): Promise<Map<string, string[]>> {
  const held = new Map<string, string[]>();
  for (const [what, service, query] of HELD) {
    for (const row of await platform.rows(service, query)) {
      held.set(keyOf(row), [...(held.get(keyOf(row)) ?? []), what]);
    }
  }
  return held;
}

/** Returns whether a run waits for a person, a signal or a timer, and not only for another agent. */
function waits(run: Row, agents: readonly Row[]): boolean {
  if (!WAITING.includes(String(run.state))) return false;
  if (Number(run.pending) > 0) return true;
  return agents.some(({ waiting_for: waitingFor, wake_at: wakeAt }) => {
    const names = JSON.parse(String(waitingFor)) as string[];
    // Ignores waits for a child, even with a timer, and waits for an approval: a pending approval is already checked
    // above.
    if (names.some((name) => name.startsWith('reply:') || name.startsWith('approval:')))
      return false;
    return names.length > 0 || (wakeAt as Date | null) !== null;
  });
}

function keyOf(row: Row): string {
  return `${row.tenant} ${row.run_id}`;
}
