import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { appendOutbox } from '@writ/store';
import { type Telemetry, traceparentOf } from '@writ/telemetry';
import type { SlotChange } from './domain/pool/pool.ts';
import type { Move } from './store/move.ts';
import type { StoredPool } from './store/pool-rows.ts';
import type { SpawnTransaction } from './store/spawn-store.ts';

/** Every hook event of spawn-budget, once; each inside the transaction of its fact (HK-1, HK-2). */
export interface SpawnEvents {
  /** Tells of a move that somebody should hear of: AGENT_PAUSED or AGENT_RESUMED. */
  slotChanged(
    trx: SpawnTransaction,
    pool: Pick<StoredPool, 'traceparent'>,
    move: Move,
  ): Promise<void>;
  /** Whether somebody should hear of a move. */
  tellsOf(move: Move): boolean;
}

/** Creates spawn-budget's events. */
export function createSpawnEvents({ log, metrics }: Telemetry): SpawnEvents {
  return {
    tellsOf: ({ change }) => eventOf(change) !== undefined,
    async slotChanged(trx, pool, { tenant, runId, change, at }) {
      const name = eventOf(change);
      if (name === undefined) return;
      const { agent, becauseOf, lapsedAt, sequence } = change;
      metrics.count('slotChanges', { 'writ.event': name, 'writ.state': statusOf(change) });
      const traceparent = traceparentOf() ?? pool.traceparent;
      const eventId = derivedId('evt', tenant, runId, agent.instance, String(sequence), name);
      const payload = toBinary(
        HookEventSchema,
        create(HookEventSchema, {
          eventId,
          type: HookEventType[name],
          emitter: 'spawn-budget',
          // The agent lost its lease then, whenever that was noticed.
          eventTime: timestampFromDate(lapsedAt === undefined ? at : new Date(lapsedAt)),
          tenant,
          runId,
          agent,
          traceparent,
          status: statusOf(change),
          dimension: 'spawns',
          ...(becauseOf === undefined ? {} : { otherAgent: becauseOf }),
        }),
      );
      const subject = hookSubject({ tenant, runId, agent: agent.instance, event: name });
      await appendOutbox(trx, { eventId, subject, payload, headers: { traceparent } }, at);
      log.info({ tenant, run_id: runId, agent: agent.instance, event_id: eventId }, name);
    },
  };
}

/** An agent whose lease lapsed is parked, too (SB-8). */
function eventOf(change: SlotChange): 'AGENT_PAUSED' | 'AGENT_RESUMED' | undefined {
  const { from, to, lapsedAt } = change;
  if (to === 'paused' || lapsedAt !== undefined) return 'AGENT_PAUSED';
  const isBack = to === 'active' && (from === 'paused' || from === 'waiting');
  return isBack ? 'AGENT_RESUMED' : undefined;
}

function statusOf({ to, lapsedAt }: SlotChange): 'paused' | 'lapsed' | 'ok' {
  if (lapsedAt !== undefined) return 'lapsed';
  return to === 'paused' ? 'paused' : 'ok';
}
