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
export function createSpawnEvents({ log }: Telemetry): SpawnEvents {
  return {
    tellsOf: ({ change }) => eventOf(change) !== undefined,
    async slotChanged(trx, pool, { tenant, runId, change, at }) {
      const name = eventOf(change);
      if (name === undefined) return;
      const { agent, becauseOf, sequence } = change;
      const traceparent = traceparentOf() ?? pool.traceparent;
      const eventId = derivedId('evt', tenant, runId, agent.instance, String(sequence), name);
      const payload = toBinary(
        HookEventSchema,
        create(HookEventSchema, {
          eventId,
          type: HookEventType[name],
          emitter: 'spawn-budget',
          eventTime: timestampFromDate(at),
          tenant,
          runId,
          agent,
          traceparent,
          status: name === 'AGENT_PAUSED' ? 'paused' : 'ok',
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

function eventOf({ from, to }: SlotChange): 'AGENT_PAUSED' | 'AGENT_RESUMED' | undefined {
  if (to === 'paused') return 'AGENT_PAUSED';
  return from === 'paused' && to === 'active' ? 'AGENT_RESUMED' : undefined;
}
