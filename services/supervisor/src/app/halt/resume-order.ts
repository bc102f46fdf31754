import type { SupervisorContext } from '../../context.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import { findHalt, type HaltRow, haltOf, loadHalt, saveHalt } from '../../store/halt/halts.ts';
import { haltsInForceAtLift } from '../../store/halt/lifted-halts.ts';
import { haltedAgents, unparkHalted } from '../../store/halt/park.ts';
import { runsInScope } from '../../store/halt/runs-in-scope.ts';
import { loadRun } from '../../store/run/runs.ts';
import { agentRefOf } from '../../wire/supervision.ts';
import type { DrivenHalt, HaltOrderHandler, StepDone } from '../order/order-handler.ts';
import { signalAgents } from './signal-agents.ts';

/**
 * Lifts one halt, and no other (SV-9): first at the meter and the gateway, so that the supervisor approves no action
 * that they still reject; then in the store, where agents resume unless another halt covers them; then the worker is
 * notified.
 */
export function resumeOrder(context: SupervisorContext): HaltOrderHandler {
  const { peers, store, events, clock } = context;

  const withHalt =
    (step: (halt: HaltRow) => Promise<StepDone>) =>
    async ({ order }: DrivenHalt): Promise<StepDone> => {
      const { haltId } = JSON.parse(order.payload) as HaltPayload;
      return await step(await loadHalt(store.urgentDb, haltId));
    };

  return {
    steps: {
      unfreeze: withHalt(async (row) => {
        const halt = haltOf(row);
        await Promise.all(
          [peers.executionMeter, peers.toolGateway].map(async (peer) => {
            // The peer does not know the freeze, so a freeze request may still be in flight and would apply after this
            // step. Sending the freeze and lifting it prevents that, because a peer never applies an order that was
            // lifted.
            if (!(await peer.unfreeze(halt.haltId))) {
              await peer.halt(halt);
              await peer.unfreeze(halt.haltId);
            }
          }),
        );
        return {};
      }),

      lift: withHalt(async ({ halt_id: haltId }) => {
        await store.transaction(
          async (trx) => {
            const row = await findHalt(trx, haltId);
            if (row?.lifted_at !== null) return;
            await saveHalt(trx, haltId, { lifted_at: clock.now() });
          },
          { urgent: true },
        );
        const halt = haltOf(await loadHalt(store.urgentDb, haltId));
        const at = halt.liftedAt ?? clock.now();
        const others = await haltsInForceAtLift(store.urgentDb, { haltId, liftedAt: at });
        for await (const key of runsInScope(store.urgentDb, halt.scope)) {
          await store.transaction(
            async (trx) => {
              await unparkHalted(trx, key, { halt, at, others });
              const run = await loadRun(trx, key);
              // One entry, as for the halt: for the root, or for the halted agent.
              for (const agent of await haltedAgents(trx, key, halt)) {
                const hasEntry =
                  halt.scope.instance !== undefined || agent.parent_instance === null;
                if (!hasEntry) continue;
                await events.haltLifted(trx, { run, agent: agentRefOf(agent) }, haltId, at);
              }
            },
            { run: key, urgent: true },
          );
        }
        return {
          async commit(trx) {
            await saveHalt(trx, haltId, { state: 'lifted' });
            const { tenant, runId } = halt.scope;
            if (runId === undefined) {
              await events.scopeHalt(trx, 'HALT_LIFTED', { haltId, tenant }, at);
            }
          },
        };
      }),

      tell: withHalt(async (row) => {
        await signalAgents(context, haltOf(row), 'resumed');
        return {};
      }),
    },
  };
}
