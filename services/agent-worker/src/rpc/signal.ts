import type {
  AgentWorkerService,
  SignalRequest,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import {
  canonicalDigest,
  InvalidRequestError,
  isJsonObject,
  isTerminal,
  NotFoundError,
  parseJsonStrict,
} from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { wakeAgent } from '../app/agents/send-signal.ts';
import { FEED_ITEM } from '../domain/agent/message.ts';
import { HALTED, RESUMED } from '../domain/agent/state.ts';
import { type AgentRow, findAgent, statusOf } from '../store/agents.ts';
import { type AgentKey, agentColumns } from '../store/keys.ts';
import { findSignal, insertSignal, type NewSignal } from '../store/signals.ts';
import type { WorkerTransaction } from '../store/worker-store.ts';
import { credentialsFrom } from '../wire/credentials.ts';
import { decisionFrom } from '../wire/decision.ts';
import type { Dependencies } from './dependencies.ts';

const APPROVAL = 'approval:';
/** Signals that only the worker itself may send. */
const INNER = ['reply:', 'timer:', FEED_ITEM];
const MAX_PAYLOAD_BYTES = 1_048_576;

/**
 * Wakes an agent, or parks it when it is halted. The signal and the wake-up are committed together
 * before the response (RT-3).
 */
export function signal({
  store,
  clock,
  agents,
}: Dependencies): Handler<typeof AgentWorkerService.method.signal> {
  return async (request, call) => {
    assertServesTenant(call.caller, request.tenant);
    const { tenant, runId, agentInstance: instance } = request;
    const key = { tenant, runId, instance };
    const row = signalRow(key, request, clock.now());
    const accepted = await store.transaction(async (trx) => {
      const agent = await findAgent(trx, key);
      if (agent === undefined) throw agentNotFound(key);
      if (await isRepeat(trx, key, row)) return false;
      if (isTerminal(statusOf(agent).state)) return false;
      await insertSignal(trx, row);
      await wake(trx, agent, request, row.received_at);
      return true;
    });
    if (accepted && request.name === HALTED) agents.park(key);
    else if (accepted) agents.nudge();
    return { accepted };
  };
}

async function isRepeat(trx: WorkerTransaction, key: AgentKey, row: NewSignal): Promise<boolean> {
  const known = await findSignal(trx, key, row.request_id);
  if (known === undefined) return false;
  if (known.request_digest === row.request_digest) return true;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    'request_id was already used for another signal.',
    { field: 'request_id' },
  );
}

async function wake(
  trx: WorkerTransaction,
  agent: AgentRow,
  { name, approval }: SignalRequest,
  at: Date,
): Promise<void> {
  const credentials = approval?.credentials;
  await wakeAgent(trx, agent, name, at, {
    ...(credentials && { credentials: JSON.stringify(credentialsFrom(credentials)) }),
  });
}

function signalRow(key: AgentKey, request: SignalRequest, at: Date): NewSignal {
  const { requestId, name, payloadJson, approval } = request;
  if (INNER.some((prefix) => name.startsWith(prefix))) {
    throw invalid('name', `must not be ${name}, which is reserved for the worker`);
  }
  if (payloadJson !== '') {
    const limits = { field: 'payload_json', maxBytes: MAX_PAYLOAD_BYTES };
    if (!isJsonObject(parseJsonStrict(payloadJson, limits))) {
      throw invalid('payload_json', 'must be a JSON object');
    }
  }
  const decision = approval && decisionFrom(approval.decision);
  if (name.startsWith(APPROVAL) !== (decision !== undefined)) {
    throw invalid(
      'approval',
      `is required for ${APPROVAL}<call_id> and not permitted for other signals`,
    );
  }
  if (decision !== undefined && name !== `${APPROVAL}${decision.callId}`) {
    throw invalid('approval.decision.call_id', 'must match the call_id in the name of the signal');
  }
  if (decision?.settled === false) throw invalid('approval.decision', 'must be settled');
  return {
    ...agentColumns(key),
    request_id: requestId,
    // Writ and tokens are new in each attempt; the decision is the same.
    request_digest: canonicalDigest({ name, payloadJson, decision: decision?.decisionId ?? '' }),
    name,
    payload: payloadJson === '' ? '{}' : payloadJson,
    decision: decision === undefined ? null : JSON.stringify(decision),
    received_at: at,
    // These signals only change the agent's state, which happens in this transaction.
    consumed_at: name === RESUMED || name === HALTED ? at : null,
  };
}

function agentNotFound({ instance, runId }: AgentKey): NotFoundError {
  return new NotFoundError('AGENT_NOT_FOUND', `Agent ${instance} does not exist in run ${runId}.`, {
    run_id: runId,
    agent: instance,
  });
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_SIGNAL', `${field} ${rule}.`, { field });
}
