import { derivedId, isWritError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { keyOf, unusedAgents } from '../../store/agents.ts';
import { hasUndecidedCall } from '../../store/tool-calls.ts';

/** The shortest idle timeout. */
const SHORTEST_MS = 1_000;

/**
 * Sweep: reports agents without a request for their idle timeout, which ends their runs with `idle` (AP-1). The
 * supervisor then cancels them here.
 */
export async function endIdle(context: ProxyContext): Promise<void> {
  const { store, clock, open, peers, tokens, telemetry } = context;
  const now = clock.now().getTime();
  for (const agent of await unusedAgents(store.db, new Date(now - SHORTEST_MS))) {
    const key = keyOf(agent);
    // The time of the latest request is stored to a quarter of the timeout: a run never ends early.
    if (now - agent.used_at.getTime() < agent.idle_ms * 1.25 || open.has(key)) continue;
    // What a person has not decided is no idleness of the program (AP-4).
    if (await hasUndecidedCall(store.db, key)) continue;
    const requestId = derivedId('req', key.tenant, key.runId, key.instance, 'idle');
    try {
      await peers.reportOutcome(requestId, 'idle', (await tokens.of(key)).supervisor);
    } catch (error) {
      if (isWritError(error) && error.reason === 'RUN_ENDED') continue;
      telemetry.log.warn({ err: error, run_id: key.runId }, 'idle agent not reported yet');
    }
  }
}
