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
import type { PoolRequest } from '../../store/pools.ts';
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
    const answers =
      wanted.length === 0
        ? new Map<Wanted, Standing | Refused>()
        : await context.ledger.transaction(poolsOf(wanted), async (books) =>
            renewAll(books, wanted),
          );
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

/** The pools that are concerned, each with its agents. */
function poolsOf(wanted: readonly Wanted[]): PoolRequest[] {
  const byRun = Map.groupBy(wanted, ({ agent }) => `${agent.tenant}/${agent.runId}`);
  return [...byRun.values()].flatMap((entries) => {
    const [first] = entries;
    if (first === undefined) return [];
    const { tenant, runId } = first.agent;
    return [{ tenant, runId, instances: entries.map(({ event }) => event.instance) }];
  });
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
