import { InvalidRequestError } from '@writ/kernel';
import { pickColumns, prepareQuery, RowCache } from '@writ/store';
import type { Refusal } from '../domain/pool/events.ts';
import type { SlotChange } from '../domain/pool/pool.ts';
import type { RequestsTable } from './schema.ts';
import type { PoolKey, SpawnReader, SpawnTransaction } from './spawn-store.ts';

/** What a call is idempotent on (SB-9). */
export interface RequestKey extends PoolKey {
  readonly instance: string;
  readonly rpc: 'acquire' | 'release' | 'reprioritize';
  readonly requestId: string;
  /** Digest of the whole request. */
  readonly digest: string;
}

/** What a call was answered; the agent's slot is not in it, since a repeat is told how it stands now. */
export interface Answer {
  readonly changes: readonly SlotChange[];
  readonly refusal?: Refusal;
  readonly released?: boolean;
}

/** What an agent's calls were answered so far. */
export interface Answers {
  /** Whether any call was answered for the agent; one that never asked was never an agent of the run. */
  readonly any: boolean;
  /** The answer that this very request got before. */
  readonly same: Answer | undefined;
}

type AnswerRow = Pick<RequestsTable, 'rpc' | 'request_id' | 'digest' | 'answer'>;

/** All that one agent's calls were answered, by agent: who acquires a slot comes back to release it. */
const cache = new RowCache<readonly AnswerRow[]>();

/**
 * Looks up what was answered for an agent.
 * @throws InvalidRequestError REQUEST_ID_REUSED when the id came with another request
 */
export async function findAnswers(trx: SpawnTransaction, key: RequestKey): Promise<Answers> {
  const rows = cache.get(trx, agentName(key)) ?? (await readAnswers(trx, key));
  const row = rows.find(({ rpc, request_id }) => rpc === key.rpc && request_id === key.requestId);
  if (row !== undefined && row.digest !== key.digest) throw reusedError(key.requestId);
  return { any: rows.length > 0, same: row && JSON.parse(row.answer) };
}

async function readAnswers(trx: SpawnTransaction, key: RequestKey): Promise<readonly AnswerRow[]> {
  const { rows } = await selectAnswers(trx, key);
  cache.set(trx, agentName(key), rows);
  return rows;
}

function agentName({ tenant, runId, instance }: RequestKey): string {
  return `${tenant}/${runId}/${instance}`;
}

/** To be called when answers of any agents were deleted. */
export function forgetAnswers(trx: SpawnTransaction): void {
  cache.clear(trx);
}

/** Records what a call is answered, in the transaction that acts on it. */
export async function recordAnswer(
  trx: SpawnTransaction,
  key: RequestKey,
  answer: Answer,
  at: Date,
): Promise<void> {
  const row = {
    tenant: key.tenant,
    run_id: key.runId,
    instance: key.instance,
    rpc: key.rpc,
    request_id: key.requestId,
    digest: key.digest,
    answer: JSON.stringify(answer),
    answered_at: at,
  };
  const name = agentName(key);
  const known = cache.get(trx, name);
  await insertAnswer(trx, row);
  if (known === undefined) cache.delete(trx, name);
  else cache.set(trx, name, [...known, row]);
}

const selectAnswers = prepareQuery((db: SpawnReader, key: RequestKey) =>
  db
    .selectFrom('requests')
    .select(['rpc', 'request_id', 'digest', 'answer'])
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance),
);

const COLUMNS = [
  'tenant',
  'run_id',
  'instance',
  'rpc',
  'request_id',
  'digest',
  'answer',
  'answered_at',
] as const;

const insertAnswer = prepareQuery((db: SpawnReader, row: RequestsTable) =>
  db.insertInto('requests').values(pickColumns(row, COLUMNS)),
);

/** The error for a request id that came with another request. */
export function reusedError(requestId: string): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was used with another request; a new request needs a new id.`,
    { field: 'request_id', request_id: requestId },
  );
}
