import type { Dialect, Finished } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type AgentKey,
  derivedId,
  InvalidRequestError,
  isWritError,
  sha256Hex,
} from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { nextCallNumber } from '../../domain/number-model-call.ts';
import { mayRenew } from '../../domain/retry-with-new-credentials.ts';
import type { StoredResponseCall } from '../../peers/peers.ts';
import { type AgentRow, keyOf } from '../../store/agents.ts';
import { insertCall, latestCall, markDelivered } from '../../store/calls.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { pauseAfter } from '../agent/act-for-agent.ts';
import { endAgent } from '../agent/end-agent.ts';
import type { RequestInProgress } from '../agent/requests-in-progress.ts';

/** A model request of an external agent, in the format of a provider. */
export interface ModelRequest {
  readonly model: string;
  readonly dialect: Dialect;
  /** Headers for the provider. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Header Idempotency-Key; empty without one. */
  readonly idempotencyKey: string;
  /** Whether the client marks the request as a retry. */
  readonly isRetry: boolean;
}

/** A part of the answer: an event of the provider as JSON, the start of a wait for a person, or the end. */
export type ModelEvent =
  | { readonly type: 'event'; readonly json: Uint8Array }
  /** The answer now waits for a person. */
  | { readonly type: 'waiting' }
  | { readonly type: 'finished'; readonly finished: Finished };

/** A model call in progress. */
export interface ModelCall {
  readonly callId: string;
  /** @throws the error that the call ends with; the reason of the request's signal; what Slots and AgentTokens throw */
  readonly events: AsyncIterable<ModelEvent>;
  /**
   * Records that the client has received the whole answer, so that an equal request is a new one. Has no effect for a
   * request with an Idempotency-Key, which always gets the same answer.
   */
  delivered(): Promise<void>;
}

/**
 * Begins a model call of an external agent (AP-2). The meter reserves, calls and settles; a repeat joins the call or
 * gets its record, and is not charged.
 * @throws InvalidRequestError MODEL_NOT_ALLOWED
 */
export async function callModel(
  context: ProxyContext,
  agent: AgentRow,
  request: ModelRequest,
  open: RequestInProgress,
): Promise<ModelCall> {
  requireModel(agent, request);
  const { callId, delivered } = await numbered(context, agent, request, open);
  return { callId, events: eventsOf(context, agent, { ...request, callId }, open), delivered };
}

/**
 * Continues a turn whose answer the client has not received, with another model call that is metered like any other.
 * Its id is derived from the first call and the request, so that a repeat is not charged.
 */
export function continueModel(
  context: ProxyContext,
  agent: AgentRow,
  { firstCallId, ...request }: ModelRequest & { readonly firstCallId: string },
  open: RequestInProgress,
): ModelCall {
  const callId = derivedId('call', firstCallId, 'continued', sha256Hex(request.body));
  const events = eventsOf(context, agent, { ...request, callId }, open);
  return { callId, events, delivered: async () => undefined };
}

/**
 * Asks the provider for the number of tokens of a request of an external agent; the call is free.
 * @throws InvalidRequestError MODEL_NOT_ALLOWED; what Slots.grant and AgentTokens.of throw; errors of the meter
 */
export async function countTokens(
  { slots, tokens, peers }: ProxyContext,
  agent: AgentRow,
  request: ModelRequest,
): Promise<Uint8Array> {
  requireModel(agent, request);
  const key = keyOf(agent);
  const grant = await slots.grant(key);
  const { executionMeter } = await tokens.of(key);
  return await peers.countTokens({ ...request, bodyJson: request.body }, executionMeter, grant);
}

/**
 * Reads, cancels or deletes an answer that the provider has stored; the call is free.
 * @throws what Slots.grant and AgentTokens.of throw; errors of the meter
 */
export async function accessResponse(
  { slots, tokens, peers }: ProxyContext,
  key: AgentKey,
  access: StoredResponseCall,
): Promise<Uint8Array> {
  const grant = await slots.grant(key);
  const { executionMeter } = await tokens.of(key);
  return await peers.accessResponse(access, executionMeter, grant);
}

/** The aliases of the models that an agent may use. */
export function modelsOf({ models }: AgentRow): readonly string[] {
  return JSON.parse(models) as string[];
}

function requireModel(agent: AgentRow, { model }: ModelRequest): void {
  const models = modelsOf(agent);
  if (models.includes(model)) return;
  const allowed = models.join(', ') || 'none';
  throw new InvalidRequestError(
    'MODEL_NOT_ALLOWED',
    `model ${model} is not allowed for ${agent.name}. Allowed models: ${allowed}.`,
    { field: 'model' },
  );
}

/**
 * Options of transactions whose loss in a power failure is harmless: without the row, the next equal request gets the
 * recorded answer again.
 */
const REPEATABLE = { background: true, relaxedDurability: true } as const;

async function numbered(
  { store, clock, open: requests }: ProxyContext,
  agent: AgentRow,
  { dialect, headers, body, idempotencyKey, isRetry }: ModelRequest,
  open: RequestInProgress,
): Promise<Pick<ModelCall, 'callId' | 'delivered'>> {
  const key = keyOf(agent);
  if (idempotencyKey !== '') {
    open.callId = derivedId('call', key.instance, 'key', idempotencyKey);
    return { callId: open.callId, delivered: async () => undefined };
  }
  const digest = sha256Hex(`${dialect}:${JSON.stringify(headers)}:${sha256Hex(body)}`);
  const idOf = (number: number) => derivedId('call', key.instance, digest, String(number));
  const findOrInsert = async (trx: ProxyTransaction): Promise<number> => {
    const latest = await latestCall(trx, key, digest);
    const connected = latest !== undefined && requests.isConnected(key, idOf(latest.number));
    const next = nextCallNumber(latest && { ...latest, connected }, isRetry);
    if (next !== latest?.number)
      await insertCall(trx, { ...key, digest, number: next }, clock.now());
    open.callId = idOf(next);
    return next;
  };
  const options = { ...REPEATABLE, run: key };
  const number = await store.transaction(findOrInsert, options);
  return {
    callId: idOf(number),
    delivered: () =>
      store.transaction((trx) => markDelivered(trx, { ...key, digest, number }), options),
  };
}

async function* eventsOf(
  context: ProxyContext,
  agent: AgentRow,
  request: ModelRequest & { readonly callId: string },
  open: RequestInProgress,
): AsyncGenerator<ModelEvent, void, undefined> {
  const { slots, tokens, peers, config } = context;
  const key = keyOf(agent);
  const { callId, model, dialect, headers, body: bodyJson } = request;
  const { disconnectGraceMs } = config;
  const call = { callId, model, dialect, headers, bodyJson, disconnectGraceMs };
  for (let attempt = 1; ; attempt++) {
    const grant = await slots.grant(key);
    // The row was read for this request.
    const { executionMeter } = await (attempt === 1 ? tokens.ofRow(agent) : tokens.of(key, true));
    try {
      for await (const { chunk } of peers.generate(call, executionMeter, grant, open.signal)) {
        if (chunk.case === 'nativeEvent') yield { type: 'event', json: chunk.value.dataJson };
        if (chunk.case === 'finished') yield { type: 'finished', finished: chunk.value };
      }
      return;
    } catch (error) {
      open.signal.throwIfAborted();
      if (isTokenRefused(error) && mayRenew(error, attempt)) {
        await pauseAfter(attempt);
        continue;
      }
      await reportExhausted(context, agent, callId, error);
      throw error;
    }
  }
}

/**
 * Reports the end of an agent when its own cap, or a cap of its run or session, is exhausted (EM-2, AP-2). Higher caps
 * do not restart the agent. A cap of the tenant does not end the agent.
 */
async function reportExhausted(
  context: ProxyContext,
  agent: AgentRow,
  callId: string,
  error: unknown,
): Promise<void> {
  if (!isWritError(error) || error.reason !== 'BUDGET_EXHAUSTED') return;
  const { level = '', stop_reason: stopReason = '' } = error.metadata;
  if (level.startsWith('tenant_') || stopReason === '') return;
  const requestId = derivedId('req', agent.run_id, agent.instance, callId, 'exhausted');
  try {
    await endAgent(context, agent, stopReason, requestId);
  } catch (failure) {
    // The next request over the cap reports it again.
    context.telemetry.log.warn(
      { err: failure, run_id: agent.run_id },
      'exhausted budget not reported',
    );
  }
}

function isTokenRefused(error: unknown): boolean {
  return (
    isWritError(error) && (error.reason === 'TOKEN_EXPIRED' || error.reason === 'TOKEN_INVALID')
  );
}
