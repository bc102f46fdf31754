import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import { type Telemetry, traceparentOf } from '@writ/telemetry';
import type { PoolSlotChange } from './app/pool/pause-feed.ts';
import type { SlotChange } from './domain/pool/pool.ts';
import type { SpawnTransaction } from './store/schema.ts';
import type { StoredPool } from './store/stored-pool.ts';

/** The hook events of spawn-budget; each is written in the transaction of its fact (HK-1, HK-2). */
export interface SpawnEvents {
  /** Records AGENT_PAUSED or AGENT_RESUMED if the change is one of them. */
  slotChanged(
    trx: SpawnTransaction,
    pool: Pick<StoredPool, 'traceparent'>,
    change: PoolSlotChange,
  ): Promise<void>;
  /** Whether a change is recorded as an event. */
  isEvent(change: PoolSlotChange): boolean;
}

/** Creates spawn-budget's events. */
export function createSpawnEvents(telemetry: Telemetry): SpawnEvents {
  const { log } = telemetry;
  const count = countAtCommit(telemetry);
  return {
    isEvent: ({ change }) => eventOf(change) !== undefined,
    async slotChanged(trx, pool, { tenant, runId, change, at }) {
      const name = eventOf(change);
      if (name === undefined) return;
      const { agent, becauseOf, leaseExpiredAt, sequence } = change;
      count(trx, 'slotChanges', { 'writ.event': name, 'writ.state': statusOf(change) });
      const traceparent = traceparentOf() ?? pool.traceparent;
      const eventId = derivedId('evt', tenant, runId, agent.instance, String(sequence), name);
      const payload = toBinary(
        HookEventSchema,
        create(HookEventSchema, {
          eventId,
          type: HookEventType[name],
          emitter: 'spawn-budget',
          // The time at which the lease expired, not at which the sweep noticed it.
          eventTime: timestampFromDate(
            leaseExpiredAt === undefined ? at : new Date(leaseExpiredAt),
          ),
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
      const ids = { run_id: runId, agent: agent.instance, event_id: eventId };
      afterCommit(trx, () => log.info({ tenant, ...ids }, name));
    },
  };
}

/** An agent whose lease expired is reported as paused (SB-8). */
function eventOf(change: SlotChange): 'AGENT_PAUSED' | 'AGENT_RESUMED' | undefined {
  const { from, to, leaseExpiredAt } = change;
  if (to === 'paused' || leaseExpiredAt !== undefined) return 'AGENT_PAUSED';
  const isResumed = to === 'active' && (from === 'paused' || from === 'waiting');
  return isResumed ? 'AGENT_RESUMED' : undefined;
}

function statusOf({ to, leaseExpiredAt }: SlotChange): 'paused' | 'lapsed' | 'ok' {
  if (leaseExpiredAt !== undefined) return 'lapsed';
  return to === 'paused' ? 'paused' : 'ok';
}
