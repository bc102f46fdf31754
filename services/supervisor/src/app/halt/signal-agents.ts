import { derivedId } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import type { Halt } from '../../domain/halt/halt.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import { keyOf } from '../../store/agent/agents.ts';
import { haltedAgents } from '../../store/halt/park.ts';
import { runsInScope } from '../../store/halt/runs-in-scope.ts';
import { ignoreNotFound } from '../order/order-handler.ts';

/**
 * Maximum number of runs that are signaled at the same time, so that a worker that does not answer delays only a few
 * other runs.
 */
const RUNS_AT_ONCE = 16;

/**
 * Signals the agents in the scope of a halt; skips agents that are unknown to the worker. An error stops only the
 * signals to its run; the first error is thrown after all runs were processed.
 */
export async function signalAgents(
  { store, peers }: Pick<SupervisorContext, 'store' | 'peers'>,
  halt: Halt,
  name: 'halted' | 'resumed',
): Promise<void> {
  const runs = runsInScope(store.urgentDb, halt.scope);
  const errors: unknown[] = [];
  const signalRuns = async (): Promise<void> => {
    for await (const key of runs) {
      try {
        for (const agent of await haltedAgents(store.urgentDb, key, halt)) {
          // A repeat uses the same request id.
          const requestId = derivedId('req', halt.haltId, key.runId, agent.instance, name);
          const signal = { ...keyOf(agent), requestId, isExternal: isExternal(agent), name };
          await ignoreNotFound(peers.agentWorker.signal(signal));
        }
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: RUNS_AT_ONCE }, signalRuns));
  if (errors.length > 0) throw errors[0];
}
