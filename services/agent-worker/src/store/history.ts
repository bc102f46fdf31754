import type { ChatTurn } from '../domain/calls/model-call.ts';
import type { AgentRow } from './agents.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Maximum number of turns of a session that an agent loads; older ones stay stored. */
const MAX_TURNS = 1_000;

/** Key of a history: the runs of one agent in one session (SUP-2). */
type Historian = Pick<AgentRow, 'tenant' | 'session_id' | 'name'>;

/** Returns the latest turns that runs of this agent left in the session, oldest first (AG-8). */
export async function loadHistory(db: WorkerReader, agent: Historian): Promise<ChatTurn[]> {
  const rows = await db
    .selectFrom('history')
    .select('turn')
    .where((eb) => eb.and(columnsOf(agent)))
    .orderBy('kept_at', 'desc')
    .orderBy('run_id', 'desc')
    .orderBy('position', 'desc')
    .limit(MAX_TURNS)
    .execute();
  return rows.reverse().map(({ turn }) => JSON.parse(turn) as ChatTurn);
}

/** Stores the turns of a run that ended. */
export async function saveHistory(
  trx: WorkerTransaction,
  agent: Historian & Pick<AgentRow, 'run_id'>,
  turns: readonly ChatTurn[],
  at: Date,
): Promise<void> {
  for (const [position, turn] of turns.entries()) {
    await trx
      .insertInto('history')
      .values({
        ...columnsOf(agent),
        run_id: agent.run_id,
        position,
        turn: JSON.stringify(turn),
        kept_at: at,
      })
      .execute();
  }
}

function columnsOf({ tenant, session_id, name }: Historian) {
  return { tenant, session_id, agent: name };
}
