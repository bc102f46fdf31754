import { type AgentKey, derivedId } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import type { ChildOrderPayload } from '../../domain/order/order-payloads.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import {
  type AgentRow,
  findAgent,
  forgetAgent,
  loadAgent,
  saveAgent,
  touchActive,
} from '../../store/agent/agents.ts';
import { endChild } from '../../store/agent/endings.ts';
import { noteSlotChange } from '../../store/agent/pauses.ts';
import { failSpawn, findSpawnOf, type SpawnRow, saveSpawn } from '../../store/agent/spawns.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { haltCovering } from '../../store/halt/halts.ts';
import { loadDecision } from '../../store/review/decisions.ts';
import type { RunRow } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { agentRefOf } from '../../wire/supervision.ts';
import type { DrivenOrder, OrderHandler, StepDone } from '../order/order-handler.ts';
import { credentialsFor } from './credentials.ts';

/** The rows that every step needs. */
interface Spawning {
  readonly key: AgentKey;
  readonly spawn: SpawnRow;
  readonly child: AgentRow;
  readonly parent: AgentRow;
}

const RUN_ENDED_REASON = 'RUN_ENDED';

/**
 * Sets up a child: acquires its slot, opens its tab and delivers it to a worker (SUP-9). If the slot is refused, the
 * child is deleted; after a later permanent failure, the order `end_child` releases the slot and closes the tab. If the
 * child, its parent or the run ends during the setup, the order `end_child` or `end_run` that was placed for this end
 * cleans up.
 */
export function spawnChildOrder(context: SupervisorContext): OrderHandler {
  const { peers, events, store, clock } = context;

  const whilePending =
    (step: (driven: DrivenOrder, spawning: Spawning) => Promise<StepDone>) =>
    async (driven: DrivenOrder): Promise<StepDone> => {
      const key = childOf(driven);
      const spawn = await findSpawnOf(store.db, key);
      const child = await findAgent(store.db, key);
      if (spawn?.state !== 'pending' || child === undefined) return { over: true };
      const parent = await loadAgent(store.db, { ...key, instance: spawn.parent_instance });
      if (isOver(driven.run) || child.ended_at !== null || parent.ended_at !== null) {
        return { over: true, commit: (trx) => failSpawn(trx, key, RUN_ENDED_REASON) };
      }
      return await step(driven, { key, spawn, child, parent });
    };

  const grantFor = async ({ order, memo }: DrivenOrder, child: AgentRow): Promise<string> => {
    const known = memo.slotGrant;
    if (known !== undefined) return known;
    // A slot grant is valid for seconds and is never stored; a repeated request returns a new one.
    const answer = await peers.spawnBudget.acquire(requestId(order.order_id, 'acquire'), child);
    return answer.kind === 'granted' ? answer.grant : '';
  };

  return {
    steps: {
      acquire: whilePending(async ({ order, memo }, { key, child }) => {
        const askedAt = clock.now();
        const answer = await peers.spawnBudget.acquire(requestId(order.order_id, 'acquire'), child);
        if (answer.kind === 'refused') {
          return { over: true, commit: (trx, at) => refuse(trx, key, answer.sentence, at) };
        }
        memo.slotGrant = answer.grant;
        // Slot changes are ordered by their time on the clock of spawn-budget, so its acquisition time is used if it is
        // known.
        const { paused, acquiredAt: at = askedAt } = answer;
        const [first] = paused;
        return {
          async commit(trx, now) {
            for (const { instance } of paused) {
              await noteSlotChange(trx, { ...key, instance }, { change: 'paused', at }, now);
            }
            if (first !== undefined) await saveSpawn(trx, key, { paused: JSON.stringify([first]) });
          },
        };
      }),

      open_tab: whilePending(async ({ order, run }, spawning) => {
        const { child } = spawning;
        await peers.executionMeter.openTab(requestId(order.order_id, 'open_tab'), run, child);
        return {
          // Before the delivery, so that HANDOFF precedes the first event of the child.
          async commit(trx, at) {
            const { step } = await loadDecision(trx, callOf(spawning));
            const scope = { run, agent: agentRefOf(spawning.parent), step };
            const { call_id: callId } = spawning.spawn;
            await events.handedOff(trx, { ...scope, callId }, agentRefOf(child), at);
            await events.childStarted(trx, { run, agent: agentRefOf(child) }, at);
            await auditStart(trx, spawning, at);
          },
        };
      }),

      deliver: whilePending(async (driven, spawning) => {
        const { order, run } = driven;
        const { key, spawn, child, parent } = spawning;
        const action = actionFrom((await loadDecision(store.db, callOf(spawning))).executed_action);
        await peers.agentWorker.deliver({
          requestId: requestId(order.order_id, 'deliver'),
          run,
          agent: child,
          credentials: await credentialsFor(context, run, child),
          slotGrant: await grantFor(driven, child),
          message: {
            text: action?.kind === 'delegation' ? action.task : '',
            correlationId: spawn.correlation_id,
            from: parent.instance,
          },
        });
        return { commit: (trx, at) => delivered(trx, key, at) };
      }),
    },

    async giveUp(trx, driven, { reason, detail }, at) {
      const key = childOf(driven);
      await failSpawn(trx, key, reason);
      if ((await findAgent(trx, key)) === undefined) return;
      await endChild(trx, { ...key, stopReason: `error:${reason}`, detail }, at);
    },
  };
}

/** Deletes a child whose slot was refused (SB-2). */
async function refuse(
  trx: SupervisorTransaction,
  key: AgentKey,
  sentence: string,
  at: Date,
): Promise<void> {
  const { name } = await loadAgent(trx, key);
  const spawn = await findSpawnOf(trx, key);
  await saveSpawn(trx, key, { state: 'refused', why_not: sentence });
  await forgetAgent(trx, key);
  const facts = {
    agent: name,
    reason: 'SLOT_DENIED',
    parent: spawn?.parent_instance,
    parent_call_id: spawn?.call_id,
  };
  await appendAudit(trx, { ...key, kind: 'agent_refused', facts }, at);
}

/** Records the delivery of a child. The agent may have acted or ended before this commit. */
async function delivered(trx: SupervisorTransaction, key: AgentKey, at: Date): Promise<void> {
  await saveSpawn(trx, key, { state: 'ready' });
  const child = await loadAgent(trx, key);
  const isNew = child.ended_at === null && child.last_seen_at === null;
  if (!isNew || child.paused_since !== null) return;
  // Halted during the delivery: the clock starts when the halt is lifted.
  if ((await haltCovering(trx, key)) !== undefined) await saveAgent(trx, key, { last_seen_at: at });
  else await touchActive(trx, child, at);
}

async function auditStart(
  trx: SupervisorTransaction,
  { key, spawn, child }: Spawning,
  at: Date,
): Promise<void> {
  const facts = {
    agent: child.name,
    definition_hash: child.definition_hash,
    parent: spawn.parent_instance,
    parent_call_id: spawn.call_id,
    priority: child.priority,
    execution_budget: child.execution_budget,
  };
  await appendAudit(trx, { ...key, kind: 'agent_started', facts }, at);
}

function childOf({ order, run }: DrivenOrder): AgentKey {
  const { instance } = JSON.parse(order.payload) as ChildOrderPayload;
  return { tenant: run.tenant, runId: run.run_id, instance };
}

function callOf({ key, spawn }: Spawning) {
  return { ...key, instance: spawn.parent_instance, callId: spawn.call_id };
}

function isOver({ state, ended_at }: RunRow): boolean {
  return state === 'ENDING' || ended_at !== null;
}

function requestId(orderId: string, step: string): string {
  return derivedId('req', orderId, step);
}
