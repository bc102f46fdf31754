import {
  type AgentRenewal,
  RenewIntent,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { readAgentToken } from '@writ/identity';
import { isWritError } from '@writ/kernel';
import type { AgentIdentity, Caller, Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import type { RenewIntent as Intent, RenewEvent } from '../../domain/pool/events.ts';
import type { Books, Standing } from '../../store/ledger.ts';
import { signedSlot } from '../slot-grants.ts';

const INTENTS: Readonly<Partial<Record<RenewIntent, Intent>>> = {
  [RenewIntent.RUN]: 'run',
  [RenewIntent.SUSPEND]: 'suspend',
  [RenewIntent.PARK]: 'park',
};

/** An entry whose token counts, and what is asked for its agent. */
interface Wanted {
  readonly agent: AgentIdentity;
  readonly event: RenewEvent;
}

/** ErrorInfo reason why one agent was refused; the others of the batch go on. */
interface Refused {
  readonly runId: string;
  readonly refusal: string;
}

/**
 * Renews the slots of a worker's agents, of any runs, in one transaction (SB-8). Each entry stands on
 * its own agent token and epoch; one that is refused does not fail the others.
 * @throws UnavailableError KEYS_UNAVAILABLE when nobody's token can be checked now
 */
export function renew(context: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['renew'] {
  return async ({ agents }, { caller }) => {
    const entries = await Promise.all(agents.map((renewal) => readEntry(context, renewal, caller)));
    const wanted = entries.filter((entry) => 'agent' in entry);
    const runs = wanted.map(({ agent }) => agent);
    const answers = await context.ledger.transaction(runs, async (books) => {
      await recallAll(books, wanted);
      return renewAll(books, wanted);
    });
    return {
      agents: await Promise.all(
        entries.map(async (entry) => {
          const answer = 'agent' in entry ? answers.get(entry) : entry;
          if (answer === undefined || 'refusal' in answer) return { ...answer };
          return { runId: answer.runId, slot: await signedSlot(context, answer) };
        }),
      ),
    };
  };
}

async function readEntry(
  { verifier }: SpawnBudgetContext,
  { agentToken, epoch, intent }: AgentRenewal,
  caller: Caller,
): Promise<Wanted | Refused> {
  try {
    const agent = await readAgentToken(verifier, agentToken, { audience: 'spawn-budget', caller });
    const { instance } = agent.agent;
    // A value that this version does not know keeps nothing alive.
    return { agent, event: { type: 'renew', instance, epoch, intent: INTENTS[intent] ?? 'park' } };
  } catch (error) {
    if (!isWritError(error)) throw error;
    if (error.kind !== 'unauthenticated' && error.kind !== 'permission_denied') throw error;
    return { runId: '', refusal: error.reason };
  }
}

/** Brings in those agents that were released: their workers are told so. */
async function recallAll(books: Books, wanted: readonly Wanted[]): Promise<void> {
  const byRun = Map.groupBy(wanted, ({ agent }) => books.find(agent));
  for (const [stored, entries] of byRun) {
    const instances = entries.map(({ event }) => event.instance);
    if (stored !== undefined) await books.recall(stored, instances);
  }
}

function renewAll(books: Books, wanted: readonly Wanted[]): Map<Wanted, Standing | Refused> {
  const answers = new Map<Wanted, Standing | Refused>();
  for (const entry of wanted) {
    const { agent, event } = entry;
    const known = books.find(agent) !== undefined;
    const { renewal } = known
      ? books.apply(agent, event).outcome
      : { renewal: 'UNKNOWN_AGENT' as const };
    if (renewal !== undefined) answers.set(entry, { runId: agent.runId, refusal: renewal });
  }
  // Looked up at the end: a later entry may have taken the slot of an earlier one.
  for (const entry of wanted) {
    const { agent, event } = entry;
    if (!answers.has(entry)) answers.set(entry, books.standing(agent, event.instance));
  }
  return answers;
}
