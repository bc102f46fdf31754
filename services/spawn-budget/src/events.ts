import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type HOOK_EMITTERS, hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import { type Telemetry, traceparentOf } from '@writ/telemetry';
import type { PoolSlotChange } from './app/pool/pause-feed.ts';
import type { SlotChange } from './domain/pool/pool.ts';
import type { SpawnTransaction } from './store/schema.ts';
import type { StoredPool } from './store/stored-pool.ts';

type EventName = (typeof HOOK_EMITTERS)['spawn-budget'][number];

/** The hook events of spawn-budget; each is written in the transaction of the change that it reports (HK-1, HK-2). */
export interface SpawnEvents {
  /** Records an event if a change is a pause, a resumption, or the beginning or end of a wait. */
  slotChanged(
    trx: SpawnTransaction,
    pool: Pick<StoredPool, 'traceparent' | 'sessionId'>,
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
      const { agent, becauseOf, leaseExpiredAt, waitingFor = [], sequence } = change;
      count(trx, 'slotChanges', { 'writ.event': name, 'writ.state': statusOf(change) });
      const traceparent = traceparentOf() ?? pool.traceparent;
      const eventId = derivedId('evt', tenant, runId, agent.instance, String(sequence), name);
      const payload = toBinary(
        HookEventSchema,
        create(HookEventSchema, {
          eventId,
          type: HookEventType[name],
          emitter: 'spawn-budget',
          // For an expired lease, the time at which it expired, which is earlier than the time at which a call or the
          // sweep ended it.
          eventTime: timestampFromDate(
            leaseExpiredAt === undefined ? at : new Date(leaseExpiredAt),
          ),
          tenant,
          runId,
          sessionId: pool.sessionId,
          agent,
          traceparent,
          status: statusOf(change),
          ...(change.wait !== 'began' && name !== 'AGENT_WOKEN' && { dimension: 'spawns' }),
          waitingFor: waitingFor.join(),
          slotSequence: BigInt(sequence),
          ...(becauseOf === undefined ? {} : { otherAgent: becauseOf }),
        }),
      );
      const subject = hookSubject({ tenant, runId, agent: agent.instance, event: name });
      await appendOutbox(trx, { eventId, subject, payload, headers: { traceparent } }, at);
      const ids = { tenant, run_id: runId, agent: agent.instance, event_id: eventId };
      const isWait = name === 'AGENT_SUSPENDED' || name === 'AGENT_WOKEN';
      afterCommit(trx, () => (isWait ? log.debug(ids, name) : log.info(ids, name)));
    },
  };
}

/**
 * Returns the event that reports a change; undefined if the change is not reported. An expired lease is reported as a
 * pause (SB-8). A resumption that ends a wait is reported only as a resumption (EM-1).
 */
function eventOf(change: SlotChange): EventName | undefined {
  const { from, to, leaseExpiredAt, wait } = change;
  if (wait === 'began') return 'AGENT_SUSPENDED';
  if (to === 'paused' || leaseExpiredAt !== undefined) return 'AGENT_PAUSED';
  const isResumed = to === 'active' && (from === 'paused' || from === 'waiting');
  if (isResumed) return 'AGENT_RESUMED';
  return wait === 'ended' ? 'AGENT_WOKEN' : undefined;
}

function statusOf({ to, leaseExpiredAt }: SlotChange): 'paused' | 'lapsed' | 'ok' {
  if (leaseExpiredAt !== undefined) return 'lapsed';
  return to === 'paused' ? 'paused' : 'ok';
}
