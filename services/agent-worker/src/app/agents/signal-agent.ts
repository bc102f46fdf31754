import type { AgentKey } from '@writ/kernel';
import { canonicalDigest, InvalidRequestError, isTerminal, NotFoundError } from '@writ/kernel';
import type { IncomingSignal } from '../../domain/agent/signal.ts';
import { HALTED, RESUMED } from '../../domain/agent/state.ts';
import { findAgent, statusOf } from '../../store/agents.ts';
import { agentColumns } from '../../store/keys.ts';
import { findSignal, insertSignal, type NewSignal } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { Dependencies } from './dependencies.ts';
import { wakeAgent } from './send-signal.ts';

/**
 * Stores a signal and wakes the agent if it waits for the signal. The signal `halted` parks the agent instead if this
 * process runs it; an agent that another replica runs is parked when its next call is refused. The signal and the
 * wake-up are committed together before the response (RT-3). Returns false for a repeated signal and for an ended
 * agent.
 */
export async function signalAgent(
  { store, clock, agents }: Pick<Dependencies, 'store' | 'clock' | 'agents'>,
  signal: IncomingSignal,
): Promise<boolean> {
  const { agent: key, name, credentials } = signal;
  const row = signalRow(signal, clock.now());
  const accept = async (trx: WorkerTransaction): Promise<boolean> => {
    const agent = await findAgent(trx, key);
    if (agent === undefined) throw agentNotFound(key);
    if (await isRepeat(trx, key, row)) return false;
    if (isTerminal(statusOf(agent).state)) return false;
    await insertSignal(trx, row);
    const changes = credentials && { credentials: JSON.stringify(credentials) };
    await wakeAgent(trx, agent, { name, ...(changes && { changes }) }, row.received_at);
    return true;
  };
  const accepted = await store.transaction(accept, { run: key });
  if (accepted && name === HALTED) agents.park(key);
  else if (accepted) agents.nudge();
  return accepted;
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

function signalRow(
  { agent, requestId, name, payloadJson, sender, decision }: IncomingSignal,
  at: Date,
): NewSignal {
  return {
    ...agentColumns(agent),
    request_id: requestId,
    // The digest excludes the writ and the tokens, because they are new in each attempt, and includes only the id of
    // the decision.
    request_digest: canonicalDigest({ name, payloadJson, decision: decision?.decisionId ?? '' }),
    name,
    payload: payloadJson === '' ? '{}' : payloadJson,
    decision: decision === undefined ? null : JSON.stringify(decision),
    sender: sender === '' ? null : sender,
    received_at: at,
    // No operation reads these signals: RESUMED wakes the agent in this transaction, HALTED parks it after the commit.
    consumed_at: name === RESUMED || name === HALTED ? at : null,
  };
}

function agentNotFound({ instance, runId }: AgentKey): NotFoundError {
  return new NotFoundError('AGENT_NOT_FOUND', `Agent ${instance} does not exist in run ${runId}.`, {
    run_id: runId,
    agent: instance,
  });
}
