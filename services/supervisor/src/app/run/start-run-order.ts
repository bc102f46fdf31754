import { type AgentKey, derivedId } from '@writ/kernel';
import { COMMIT_DELAY_MS } from '@writ/store';
import type { SupervisorContext } from '../../context.ts';
import { loadAgent, saveAgent, touchActive } from '../../store/agent/agents.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { updateClocksAndRunState } from '../../store/agent/waits.ts';
import { delayedBy, haltCovering } from '../../store/halt/halts.ts';
import { loadRun, type RunRow, setRunState } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { credentialsFor } from '../agent/credentials.ts';
import type { OrderHandler, StepDone } from '../order/order-handler.ts';

/**
 * Starts a run in one step: pool and tab, then the delivery of the root agent (CO-1). A repeat after a crash makes the
 * same calls under the same request ids. If the run is no longer PENDING, for example because it was cancelled, the
 * order ends without delivering the agent.
 */
export function startRunOrder(context: SupervisorContext): OrderHandler {
  const { peers, store, starts, clock } = context;
  return {
    steps: {
      async start({ order, run }): Promise<StepDone> {
        if (!isStarting(run)) return { over: true };
        const startedAt = performance.now();
        const agent = await loadAgent(store.db, rootKeyOf(run));
        const [slotGrant, credentials] = await Promise.all([
          peers.spawnBudget.openPool(requestId(order.order_id, 'open_pool'), run),
          credentialsFor(context, run, agent),
          peers.executionMeter.openTab(requestId(order.order_id, 'open_tab'), run, agent),
        ]);
        // The run is read again, because it may have been cancelled or halted while the pool and the tab were being
        // opened.
        const [latest, halt] = await Promise.all([
          loadRun(store.db, rootKeyOf(run)),
          haltCovering(store.db, rootKeyOf(run)),
        ]);
        if (!isStarting(latest)) return { over: true };
        if (halt !== undefined) throw delayedBy(halt);
        await peers.agentWorker.deliver({
          requestId: requestId(order.order_id, 'deliver'),
          run,
          agent,
          credentials,
          slotGrant,
          message: { text: run.goal, dataJson: run.data_json, correlationId: run.session_id },
        });
        // The time is read here and not in the transaction, because the transaction may start up to COMMIT_DELAY_MS
        // later, so that it shares a commit with the first review of the run.
        const at = clock.now();
        starts.observe(performance.now() - startedAt, performance.now());
        return { commitDelayMs: COMMIT_DELAY_MS, commit: (trx) => delivered(trx, run, at) };
      },
    },
    async giveUp(trx, { run }, { reason, detail }, at) {
      await recordEnding(trx, { ...rootKeyOf(run), stopReason: `error:${reason}`, detail }, at);
    },
  };
}

/** Returns the key of the root agent of a run. */
export function rootKeyOf(run: RunRow): AgentKey {
  return { tenant: run.tenant, runId: run.run_id, instance: run.root_instance };
}

/** Records the delivery of the root agent. The agent may have acted or ended before this commit. */
async function delivered(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  const key = rootKeyOf(run);
  const { state } = await loadRun(trx, key);
  if (state !== 'PENDING') return;
  const agent = await loadAgent(trx, key);
  if ((await haltCovering(trx, key)) !== undefined) {
    // Halted during the delivery: the agent resumes when the halt is lifted.
    await saveAgent(trx, key, { state: 'PARKED', last_seen_at: at });
    await setRunState(trx, key, 'PARKED', at);
    return;
  }
  await setRunState(trx, key, 'RUNNING', at);
  if (agent.state === 'SUSPENDED') await updateClocksAndRunState(trx, key, at);
  if (agent.last_seen_at === null) await touchActive(trx, agent, at);
}

function isStarting({ state }: RunRow): boolean {
  return state === 'PENDING';
}

function requestId(orderId: string, step: string): string {
  return derivedId('req', orderId, step);
}
