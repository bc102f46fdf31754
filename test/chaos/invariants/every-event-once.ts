import { fromBinary } from '@bufbuild/protobuf';
import { HOOK_EMITTER_NAMES } from '@writ/bus';
import { RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { derivedId } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import type { Invariant } from './invariant.ts';

/** Reports of waits, which a timeline shows as the state of its run. */
const NOT_ON_TIMELINES = ['AGENT_SUSPENDED', 'AGENT_WOKEN'];

export const everyEventOnce: Invariant = {
  holds:
    'each event is in its timeline exactly once, in order per emitter and agent, and no other events are (HK-1, HK-2)',
  violations: async ({ platform }) => {
    const timeline = await platform.rows(
      'supervisor',
      'select run_id, event_id, sequence, entry from timeline',
    );
    const positions = new Map(
      timeline.map((row) => [keyOf(row.run_id, row.event_id), row.sequence]),
    );
    const emitted = new Set<string>();
    const problems: string[] = [];
    for (const emitter of HOOK_EMITTER_NAMES) {
      const last = new Map<string, number>();
      for (const { runId, agent, eventId, event, isPublished } of await outboxOf(
        platform,
        emitter,
      )) {
        const description = `${event} of ${runId} (${eventId})`;
        const key = keyOf(runId, timelineId(emitter, eventId));
        const position = Number(positions.get(key) ?? Number.NaN);
        if (!isPublished) problems.push(`not published: ${description}`);
        if (NOT_ON_TIMELINES.includes(event)) continue;
        emitted.add(key);
        if (Number.isNaN(position)) problems.push(`lost: ${description}`);
        else if (position < (last.get(`${runId} ${agent}`) ?? 0))
          problems.push(`out of order: ${description}`);
        last.set(`${runId} ${agent}`, position);
      }
    }
    const unexpected = timeline.filter(
      (row) => isHook(row.entry) && !emitted.has(keyOf(row.run_id, row.event_id)),
    );
    problems.push(...unexpected.map((row) => `unexpected: ${keyOf(row.run_id, row.event_id)}`));
    return problems;
  },
};

async function outboxOf(
  platform: DistributedPlatform,
  emitter: (typeof HOOK_EMITTER_NAMES)[number],
) {
  const rows = await platform.rows(
    emitter,
    'select subject, event_id, published_at from outbox order by position',
  );
  return rows.flatMap(({ subject, event_id: eventId, published_at: at }) => {
    const [, , , , runId = '', agent = '', event = ''] = String(subject).split('.');
    if (runId === '-') return [];
    return [{ runId, agent, eventId: String(eventId), event, isPublished: at !== null }];
  });
}

/** A timeline also holds decisions and results, which are not hook events. */
function isHook(entry: unknown): boolean {
  return fromBinary(RunEventSchema, entry as Uint8Array).entry.case === 'hook';
}

function timelineId(emitter: string, eventId: string): string {
  return emitter === 'agent-worker' ? derivedId('evt', emitter, eventId) : eventId;
}

function keyOf(runId: unknown, eventId: unknown): string {
  return `${runId} ${eventId}`;
}
