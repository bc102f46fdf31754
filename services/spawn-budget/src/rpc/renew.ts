import {
  type AgentRenewal,
  RenewIntent,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { readAgentToken } from '@writ/identity';
import { isWritError, UnavailableError } from '@writ/kernel';
import type { Caller, Handlers } from '@writ/rpc';
import { type RejectedRenewal, type Renewal, renewSlots } from '../app/slot/renew-slots.ts';
import { signedSlot } from '../app/slot/slot-grants.ts';
import type { SpawnBudgetContext } from '../context.ts';
import type { RenewIntent as Intent } from '../domain/pool/events.ts';

const INTENTS: Readonly<Partial<Record<RenewIntent, Intent>>> = {
  [RenewIntent.RUN]: 'run',
  [RenewIntent.SUSPEND]: 'suspend',
  [RenewIntent.PARK]: 'park',
};

/** Refusal reason of an entry whose token cannot be verified yet; the worker repeats the renewal. */
const UNVERIFIED = 'KEYS_UNAVAILABLE';

/**
 * Renews the slots of a worker's agents (SB-8). Each entry has its own agent token and epoch; a rejected
 * entry does not fail the others.
 * @throws UnavailableError KEYS_UNAVAILABLE if no token can be verified because the keys of the supervisor are
 *   unavailable; if only some tokens cannot be verified, their entries are refused with KEYS_UNAVAILABLE
 */
export function renew(context: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['renew'] {
  return async ({ agents }, { caller }) => {
    const entries = await Promise.all(agents.map((entry) => readEntry(context, entry, caller)));
    if (entries.every(isUnverified)) {
      const message = 'The keys of supervisor are unavailable, so no agent token can be verified.';
      throw new UnavailableError('KEYS_UNAVAILABLE', message, { service: 'supervisor' });
    }
    const renewals = entries.filter((entry) => 'agent' in entry);
    const results = await renewSlots(context.repository, renewals);
    return {
      agents: await Promise.all(
        entries.map(async (entry) => {
          const result = 'agent' in entry ? results.get(entry) : entry;
          if (result === undefined || 'refusal' in result) return { ...result };
          return { runId: result.runId, slot: await signedSlot(context, result) };
        }),
      ),
    };
  };
}

async function readEntry(
  { verifier }: SpawnBudgetContext,
  { agentToken, epoch, intent, waitingFor }: AgentRenewal,
  caller: Caller,
): Promise<Renewal | RejectedRenewal> {
  try {
    const agent = await readAgentToken(verifier, agentToken, { audience: 'spawn-budget', caller });
    const { instance } = agent.agent;
    // An intent that this version does not know is handled as `park`, which renews no lease.
    const renewal = { type: 'renew', instance, epoch, intent: INTENTS[intent] ?? 'park' } as const;
    return { agent, event: { ...renewal, waitingFor } };
  } catch (error) {
    if (!isWritError(error)) throw error;
    const isOfEntry = error.kind === 'unauthenticated' || error.kind === 'permission_denied';
    if (!isOfEntry && error.reason !== UNVERIFIED) throw error;
    return { runId: '', refusal: error.reason };
  }
}

function isUnverified(entry: Renewal | RejectedRenewal): boolean {
  return 'refusal' in entry && entry.refusal === UNVERIFIED;
}
