import type { InFlightCall } from '@writ/contracts/writ/control/v1/freeze_pb';
import type { SupervisorContext } from '../../context.ts';
import type { Halt } from '../../domain/halt/halt.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import { keyOf } from '../../store/agent/agents.ts';
import { endChild, recordEnding } from '../../store/agent/endings.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { findHalt, type HaltRow, haltOf, saveHalt, scopeOf } from '../../store/halt/halts.ts';
import { haltedAgents, parkHalted } from '../../store/halt/park.ts';
import { runsInScope, stoppedTenants } from '../../store/halt/runs-in-scope.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { haltInForceEvent, inFlightJson } from '../../wire/halt.ts';
import { agentRefOf } from '../../wire/supervision.ts';
import type { DrivenHalt, HaltOrderHandler, StepDone } from '../order/order-handler.ts';
import { haltFacts } from './request-halt.ts';
import { signalAgents } from './signal-agents.ts';

/**
 * Enforces a halt (SV-9). First, meter and gateway reject and abort calls, and at the same time the agents are parked;
 * the halt is then in force. If requested, the order then ends the runs in scope. Finally it notifies the worker. The
 * supervisor rejects actions as soon as the halt is committed.
 */
export function haltOrder(context: SupervisorContext): HaltOrderHandler {
  const { peers, store, events, notify, clock } = context;

  const whileActive =
    (step: (halt: HaltRow) => Promise<StepDone>) =>
    async ({ order }: DrivenHalt): Promise<StepDone> => {
      const { haltId } = JSON.parse(order.payload) as HaltPayload;
      const halt = await findHalt(store.urgentDb, haltId);
      const isActive = halt?.state === 'pending' || halt?.state === 'in_force';
      return isActive ? await step(halt) : { over: true };
    };

  /** Saves the answer of one service even if the other service does not answer. */
  const note = async (
    halt: HaltRow,
    ask: Promise<readonly InFlightCall[]>,
    changes: (at: Date, inFlight: string) => Partial<HaltRow>,
  ): Promise<void> => {
    const inFlight = inFlightJson(await ask);
    await store.transaction((trx) => saveHalt(trx, halt.halt_id, changes(clock.now(), inFlight)), {
      urgent: true,
    });
  };

  return {
    steps: {
      enforce: whileActive(async (row) => {
        const halt = haltOf(row);
        const asked = await Promise.allSettled([
          note(row, peers.executionMeter.halt(halt), (meter_at, meter_in_flight) => ({
            meter_at,
            meter_in_flight,
          })),
          note(row, peers.toolGateway.halt(halt), (gateway_at, gateway_in_flight) => ({
            gateway_at,
            gateway_in_flight,
          })),
          // Runs in parallel, so that the clocks of the agents stop even if a service does not answer.
          parkRuns(context, halt),
        ]);
        const failed = asked.find((answer) => answer.status === 'rejected');
        if (failed !== undefined) throw failed.reason;
        return {};
      }),

      confirm: whileActive(async (row) => ({
        async commit(trx, at) {
          const { halt_id: haltId } = row;
          const now = await findHalt(trx, haltId);
          if (now?.state !== 'pending') return;
          await saveHalt(trx, haltId, { state: 'in_force' });
          const { tenant, runId } = scopeOf(row);
          if (runId === undefined) await events.scopeHalt(trx, 'HALTED', { haltId, tenant }, at);
          await notify(trx, haltInForceEvent(row, at), at);
          if (tenant === undefined) await auditEverywhere(trx, row, at);
        },
      })),

      end: whileActive(async (row) => {
        if (row.end_runs) await endRuns(context, row);
        return {};
      }),

      tell: whileActive(async (row) => {
        await signalAgents(context, haltOf(row), 'halted');
        return {};
      }),
    },
  };
}

/**
 * Parks the agents in the scope of a halt, run by run. The timeline of each run gets one entry, for its root or for
 * the halted agent.
 */
async function parkRuns({ store, events, clock }: SupervisorContext, halt: Halt): Promise<void> {
  for await (const key of runsInScope(store.urgentDb, halt.scope)) {
    await store.transaction(
      async (trx) => {
        const run = await loadRun(trx, key);
        for (const agent of await parkHalted(trx, key, halt)) {
          const hasEntry = halt.scope.instance !== undefined || agent.parent_instance === null;
          if (!hasEntry) continue;
          await events.halted(trx, { run, agent: agentRefOf(agent) }, halt.haltId, clock.now());
        }
      },
      { run: key, urgent: true },
    );
  }
}

async function endRuns({ store, clock }: SupervisorContext, row: HaltRow): Promise<void> {
  const halt = haltOf(row);
  const order = { by: halt.orderedBy, reason: halt.reason };
  for await (const key of runsInScope(store.urgentDb, halt.scope)) {
    await store.transaction(
      async (trx) => {
        const at = clock.now();
        const agents = await haltedAgents(trx, key, halt);
        const root = agents.find((agent) => agent.parent_instance === null);
        // The end of the root ends all other agents.
        for (const agent of root === undefined ? agents : [root]) {
          const ending = { ...keyOf(agent), stopReason: 'halted', order };
          if (agent === root) await recordEnding(trx, ending, at);
          else await endChild(trx, ending, at);
        }
      },
      { run: key, urgent: true },
    );
  }
}

/** Audits a halt of everything in the chain of every tenant that it stops (SV-8). */
async function auditEverywhere(trx: SupervisorTransaction, halt: HaltRow, at: Date): Promise<void> {
  for (const tenant of await stoppedTenants(trx, halt.ordered_at)) {
    if (tenant === halt.ordered_for) continue;
    await appendAudit(trx, { tenant, kind: 'halt', facts: haltFacts(halt) }, at);
  }
}
