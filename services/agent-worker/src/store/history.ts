import { DeferredInsert, prepareQuery } from '@writ/store';
import type { Insertable } from 'kysely';
import type { ChatTurn } from '../domain/calls/model-call.ts';
import type { AgentRow } from './agents.ts';
import type { WorkerDatabase } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Maximum number of turns of a session that an agent loads; older turns remain stored. */
const MAX_TURNS = 1_000;

/** The agent and session that a history belongs to (SUP-2). */
type HistoryKey = Pick<AgentRow, 'tenant' | 'session_id' | 'name'>;

/**
 * Returns the latest turns that runs of this agent stored in the session, oldest first (AG-8). They never start with
 * tool results: providers reject results without the turn that requested them.
 */
export async function loadHistory(db: WorkerReader, agent: HistoryKey): Promise<ChatTurn[]> {
  const { rows } = await selectTurns(db, columnsOf(agent));
  const turns = rows.reverse().map(({ turn }) => JSON.parse(turn) as ChatTurn);
  while (turns[0]?.role === 'tool') turns.shift();
  return turns;
}

const selectTurns = prepareQuery((db: WorkerReader, key: ReturnType<typeof columnsOf>) =>
  db
    .selectFrom('history')
    .select('turn')
    .where('tenant', '=', key.tenant)
    .where('session_id', '=', key.session_id)
    .where('agent', '=', key.agent)
    .orderBy('kept_at', 'desc')
    .orderBy('run_id', 'desc')
    .orderBy('position', 'desc')
    .limit(MAX_TURNS),
);

const turnRows = new DeferredInsert<WorkerDatabase, Insertable<WorkerDatabase['history']>>({
  table: 'history',
  columns: ['tenant', 'session_id', 'agent', 'run_id', 'position', 'turn', 'kept_at'],
});

/** Stores the turns of a run that ended successfully, at the end of the transaction. */
export function saveHistory(
  trx: WorkerTransaction,
  agent: HistoryKey & Pick<AgentRow, 'run_id'>,
  turns: readonly ChatTurn[],
  at: Date,
): void {
  for (const [position, turn] of turns.entries()) {
    turnRows.add(trx, {
      ...columnsOf(agent),
      run_id: agent.run_id,
      position,
      turn: JSON.stringify(turn),
      kept_at: at,
    });
  }
}

function columnsOf({ tenant, session_id, name }: HistoryKey) {
  return { tenant, session_id, agent: name };
}
