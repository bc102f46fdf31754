import { type AgentKey, derivedId } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { loadAgent, saveAgent, touchActive } from '../../store/agent/agents.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { haltOver } from '../../store/halt/halts.ts';
import { loadRun, type RunRow, setRunState } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { rootRefOf } from '../../wire/supervision.ts';
import { credentialsFor } from '../agent/credentials.ts';
import type { DrivenOrder, OrderHandler, StepDone } from '../order/order-handler.ts';

const SLOT_GRANT = 'slot_grant';

/** Sets up a run: pool, tab, delivery of the root. Skips a run that has ended. */
export function startRunOrder(context: SupervisorContext): OrderHandler {
  const { peers, events, store } = context;

  const openPool = async ({ order, run, memo }: DrivenOrder): Promise<string> => {
    const grant = await peers.spawnBudget.openPool(requestId(order.order_id, 'open_pool'), run);
    memo.set(SLOT_GRANT, grant);
    return grant;
  };

  const whileAlive =
    (step: (driven: DrivenOrder) => Promise<StepDone>) =>
    async (driven: DrivenOrder): Promise<StepDone> =>
      isStarting(driven.run) ? await step(driven) : { over: true };

  return {
    steps: {
      open_pool: whileAlive(async (driven) => {
        await openPool(driven);
        return {};
      }),
      open_tab: whileAlive(async ({ order, run }) => {
        const agent = await loadAgent(store.db, rootKeyOf(run));
        await peers.executionMeter.openTab(requestId(order.order_id, 'open_tab'), run, agent);
        return {
          // Before the delivery, so that RUN_START precedes the first decision.
          commit: (trx, at) => events.runStarted(trx, { run, agent: rootRefOf(run) }, at),
        };
      }),
      deliver: whileAlive(async (driven) => {
        const { order, run, memo } = driven;
        const agent = await loadAgent(store.db, rootKeyOf(run));
        await peers.agentWorker.deliver({
          requestId: requestId(order.order_id, 'deliver'),
          run,
          agent,
          credentials: await credentialsFor(context, run, agent),
          // A slot grant is valid for seconds and is never stored; a repeated request returns a new one.
          slotGrant: memo.get(SLOT_GRANT) ?? (await openPool(driven)),
          message: { text: run.goal, dataJson: run.data_json, correlationId: run.session_id },
        });
        return { commit: (trx, at) => delivered(trx, run, at) };
      }),
    },
    async giveUp(trx, { run }, reason, at) {
      await recordEnding(trx, { ...rootKeyOf(run), stopReason: `error:${reason}` }, at);
    },
  };
}

/** The key of a run's root. */
export function rootKeyOf(run: RunRow): AgentKey {
  return { tenant: run.tenant, runId: run.run_id, instance: run.root_instance };
}

/** The agent may have acted, or ended, before this commit. */
async function delivered(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  const key = rootKeyOf(run);
  const { state } = await loadRun(trx, key);
  if (state !== 'PENDING') return;
  const agent = await loadAgent(trx, key);
  if ((await haltOver(trx, key)) !== undefined) {
    // Halted during the delivery: the agent resumes when the halt is lifted.
    await saveAgent(trx, key, { state: 'PARKED', last_seen_at: at });
    await setRunState(trx, key, 'PARKED');
    return;
  }
  await setRunState(trx, key, agent.state === 'SUSPENDED' ? 'SUSPENDED' : 'RUNNING');
  if (agent.last_seen_at === null) await touchActive(trx, agent, at);
}

function isStarting({ state }: RunRow): boolean {
  return state === 'PENDING';
}

function requestId(orderId: string, step: string): string {
  return derivedId('req', orderId, step);
}
