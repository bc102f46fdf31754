import { type AgentKey, agentKeyText, InvalidRequestError, type RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite, RowCache } from '@writ/store';
import type { Refusal } from '../domain/pool/events.ts';
import type { SlotChange } from '../domain/pool/pool.ts';
import { type RequestRow, requests, type SpawnReader, type SpawnTransaction } from './schema.ts';

/** Identifies a request for idempotency (SB-9). */
export interface RequestKey extends AgentKey {
  readonly rpc: 'acquire' | 'release' | 'reprioritize';
  readonly requestId: string;
  /** Digest of the whole request. */
  readonly digest: string;
}

/** The recorded answer to a call, without the agent's slot, because a repeated call returns the current slot. */
export interface Answer {
  readonly changes: readonly SlotChange[];
  readonly refusal?: Refusal;
  readonly released?: boolean;
}

/** The recorded answers of one agent. */
export interface Answers {
  /**
   * Whether any answer is recorded for the agent. Except for the root, an agent without recorded answers was never a
   * member of the run.
   */
  readonly any: boolean;
  /** The recorded answer to the request with this RPC and request id; undefined if the request is new. */
  readonly same: Answer | undefined;
}

type AnswerRow = Pick<RequestRow, 'rpc' | 'request_id' | 'digest' | 'answer'>;

/** Cache of the answers of each agent. The release of a slot reads the answers that its acquisition has cached. */
const cache = new RowCache<readonly AnswerRow[]>();

/**
 * Reads the recorded answers of an agent.
 * @throws InvalidRequestError REQUEST_ID_REUSED if the id was used for a different request
 */
export async function findAnswers(trx: SpawnTransaction, key: RequestKey): Promise<Answers> {
  const rows = cache.get(trx, agentKeyText(key)) ?? (await readAnswers(trx, key));
  const row = rows.find(({ rpc, request_id }) => rpc === key.rpc && request_id === key.requestId);
  if (row !== undefined && row.digest !== key.digest) throw requestIdReused(key.requestId);
  return { any: rows.length > 0, same: row && JSON.parse(row.answer) };
}

async function readAnswers(trx: SpawnTransaction, key: RequestKey): Promise<readonly AnswerRow[]> {
  const { rows } = await selectAnswers(trx, key);
  cache.set(trx, agentKeyText(key), rows);
  return rows;
}

/** Removes the answers of a run from the cache, when its pool is closed (CO-2). */
export function forgetAnswers(trx: SpawnTransaction, { tenant, runId }: RunKey): void {
  cache.deletePrefix(trx, `${tenant}/${runId}/`);
}

/** Clears the cache; required after answers were deleted. */
export function clearAnswerCache(trx: SpawnTransaction): void {
  cache.clear(trx);
}

/** Records the answer to a call in the transaction of its effect. */
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
  const name = agentKeyText(key);
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

const insertAnswer = prepareWrite((db: SpawnReader, row: RequestRow) =>
  db.insertInto('requests').values(pickColumns(row, requests.columns)),
);

/** The error for a request id that was used for a different request. */
export function requestIdReused(requestId: string): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was used for a different request; use a new id for each request.`,
    { field: 'request_id', request_id: requestId },
  );
}
