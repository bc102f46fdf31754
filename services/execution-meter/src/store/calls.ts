import type { AgentKey, CallKey, Scope } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite } from '@writ/store';
import type { Insertable, Selectable } from 'kysely';
import type { ChatAnswer } from '../domain/chat/chat.ts';
import type { CallFailure } from '../domain/chat/failure.ts';
import type { TokenUsage } from '../domain/ledger/spending.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import { type CallTable, calls } from './schema.ts';

/**
 * State of a call: `running` until its outcome is committed; `interrupted` when no attempt is in flight and the outcome
 * is not final, because the call was aborted, its next attempt was refused or not permitted, or its process died (a
 * repeat makes another attempt); `answered` and `failed` are final (EM-7).
 */
type CallState = 'running' | 'interrupted' | 'answered' | 'failed';

/** One model call and its outcome. */
export interface StoredCall {
  readonly callId: string;
  readonly requestDigest: string;
  /** Catalog alias. */
  readonly model: string;
  readonly step: number;
  readonly state: CallState;
  readonly attempts: number;
  /** Process of the last attempt; empty without an attempt. */
  readonly owner: string;
  /** Sum of all attempts. */
  readonly usage: TokenUsage;
  readonly cost: bigint;
  readonly estimated: boolean;
  readonly answer: ChatAnswer | undefined;
  /** Whether the retention of the run has deleted the answer (SUP-4). */
  readonly purged: boolean;
  readonly failure: CallFailure | undefined;
  readonly warnings: readonly string[];
  /** Last events of the call, each encoded as protobuf and then base64. */
  readonly events: readonly string[];
  /** Requested output tokens after fitting the budget. */
  readonly fittedOutput: bigint;
  readonly traceparent: string;
  readonly startedAt: Date;
}

/** Returns a call of an agent; undefined when it does not exist. */
export async function findCall(
  db: MeterReader,
  key: AgentKey,
  callId: string,
): Promise<StoredCall | undefined> {
  const [row] = (await selectCall(db, { ...key, callId })).rows;
  return row && toCall(row);
}

const selectCall = prepareQuery((db: MeterReader, call: CallKey) =>
  db
    .selectFrom('calls')
    .selectAll()
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('agent_instance', '=', call.instance)
    .where('call_id', '=', call.callId),
);

/** Inserts or updates a call, unless another process has made a later attempt. */
export async function saveCall(
  trx: MeterTransaction,
  key: AgentKey,
  call: StoredCall,
  endedAt: Date | undefined,
): Promise<void> {
  await upsertCall(trx, {
    tenant: key.tenant,
    run_id: key.runId,
    agent_instance: key.instance,
    call_id: call.callId,
    request_digest: call.requestDigest,
    model: call.model,
    step: call.step,
    started_at: call.startedAt,
    state: call.state,
    attempts: call.attempts,
    owner: call.owner,
    input_tokens: call.usage.input,
    cached_input_tokens: call.usage.cachedInput,
    cache_write_input_tokens: call.usage.cacheWrite,
    output_tokens: call.usage.output,
    reasoning_tokens: call.usage.reasoning,
    cost: call.cost,
    estimated: call.estimated,
    purged: call.purged,
    answer: call.answer === undefined ? null : JSON.stringify(call.answer),
    failure: call.failure === undefined ? null : JSON.stringify(call.failure),
    warnings: JSON.stringify(call.warnings),
    events: JSON.stringify(call.events),
    fitted_output: call.fittedOutput,
    traceparent: call.traceparent,
    ended_at: endedAt ?? null,
  });
}

const KEY = ['tenant', 'run_id', 'agent_instance', 'call_id'] as const;
/** Columns that attempts update. */
const PROGRESS = [
  'state',
  'attempts',
  'owner',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost',
  'estimated',
  'purged',
  'answer',
  'failure',
  'warnings',
  'events',
  'fitted_output',
  'traceparent',
  'ended_at',
] as const;

const upsertCall = prepareWrite((db: MeterReader, row: Insertable<CallTable>) =>
  db
    .insertInto('calls')
    .values(pickColumns(row, calls.columns))
    .onConflict((conflict) =>
      conflict
        .columns(KEY)
        .doUpdateSet(pickColumns(row, PROGRESS))
        .where('calls.attempts', '<=', row.attempts),
    ),
);

/** Maximum number of calls whose events are returned when a tab is closed. */
const LAST_CALLS = 64;

/** Returns the encoded events of the last {@link LAST_CALLS} calls of an agent, oldest first. */
export async function lastEvents(db: MeterReader, key: AgentKey): Promise<Uint8Array[]> {
  const { rows } = await selectEvents(db, key);
  return rows
    .toReversed()
    .flatMap(({ events }) => JSON.parse(events) as string[])
    .map((event) => new Uint8Array(Buffer.from(event, 'base64')));
}

const selectEvents = prepareQuery((db: MeterReader, key: AgentKey) =>
  db
    .selectFrom('calls')
    .select('events')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.instance)
    .orderBy('started_at', 'desc')
    .limit(LAST_CALLS),
);

/** A call in flight, or orphaned by a dead process. */
export interface RunningCall extends CallKey {
  readonly model: string;
  readonly attempt: number;
  readonly owner: string;
  readonly startedAt: Date;
}

/** Returns the calls in flight within a scope, of all processes. */
export async function runningCalls(
  db: MeterReader,
  { tenant, runId, instance }: Scope = {},
): Promise<RunningCall[]> {
  let query = db
    .selectFrom('entries')
    .innerJoin('calls', (join) =>
      join
        .onRef('calls.tenant', '=', 'entries.tenant')
        .onRef('calls.run_id', '=', 'entries.run_id')
        .onRef('calls.agent_instance', '=', 'entries.agent_instance')
        .onRef('calls.call_id', '=', 'entries.call_id')
        .onRef('calls.attempts', '=', 'entries.attempt'),
    )
    .select(['calls.tenant', 'calls.run_id', 'calls.agent_instance', 'calls.call_id'])
    .select(['calls.model', 'calls.attempts', 'calls.owner', 'entries.created_at'])
    .where('entries.state', 'in', ['reserved', 'sent'])
    .where('entries.kind', '=', 'call')
    .where('calls.state', '=', 'running')
    .where('calls.owner', '!=', '');
  if (tenant !== undefined) query = query.where('calls.tenant', '=', tenant);
  if (runId !== undefined) query = query.where('calls.run_id', '=', runId);
  if (instance !== undefined) {
    query = query.where('calls.agent_instance', '=', instance);
  }
  const rows = await query.execute();
  return rows.map((row) => ({
    tenant: row.tenant,
    runId: row.run_id,
    instance: row.agent_instance,
    callId: row.call_id,
    model: row.model,
    attempt: row.attempts,
    owner: row.owner,
    startedAt: row.created_at,
  }));
}

/**
 * Deletes the recorded answers of all agents of a run, or only of agents that do not retain them permanently (SUP-4).
 */
export async function purgeAnswers(
  trx: MeterTransaction,
  { tenant, runId }: { readonly tenant: string; readonly runId: string },
  allAgents: boolean,
): Promise<void> {
  let query = trx
    .updateTable('calls')
    .set({ answer: null, purged: true })
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('answer', 'is not', null);
  if (!allAgents) {
    query = query.where('agent_instance', 'in', (tabs) =>
      tabs
        .selectFrom('tabs')
        .select('agent_instance')
        .where('tenant', '=', tenant)
        .where('run_id', '=', runId)
        .where('retention', '!=', 'permanent'),
    );
  }
  await query.execute();
}

function toCall(row: Selectable<CallTable>): StoredCall {
  return {
    callId: row.call_id,
    requestDigest: row.request_digest,
    model: row.model,
    step: row.step,
    state: row.state as CallState,
    attempts: row.attempts,
    owner: row.owner,
    usage: {
      input: row.input_tokens,
      cachedInput: row.cached_input_tokens,
      cacheWrite: row.cache_write_input_tokens,
      output: row.output_tokens,
      reasoning: row.reasoning_tokens,
    },
    cost: row.cost,
    estimated: row.estimated,
    answer: row.answer === null ? undefined : (JSON.parse(row.answer) as ChatAnswer),
    purged: row.purged,
    failure: row.failure === null ? undefined : (JSON.parse(row.failure) as CallFailure),
    warnings: JSON.parse(row.warnings) as string[],
    events: JSON.parse(row.events) as string[],
    fittedOutput: row.fitted_output,
    traceparent: row.traceparent,
    startedAt: row.started_at,
  };
}
