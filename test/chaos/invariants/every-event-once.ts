import { fromBinary } from '@bufbuild/protobuf';
import { HOOK_EMITTER_NAMES } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { derivedId } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import type { Invariant } from './invariant.ts';

/** Events that report a wait; they are not on timelines, which show the wait as the state of the run. */
const NOT_ON_TIMELINES = ['AGENT_SUSPENDED', 'AGENT_WOKEN'];

export const everyEventOnce: Invariant = {
  holds:
    'each event is in its timeline exactly once, in order per emitter and agent, and timelines contain no other events (HK-1, HK-2)',
  violations: async ({ platform }) => {
    const timeline = await platform.rows(
      'supervisor',
      'select run_id, event_id, sequence, entry from timeline',
    );
    const positions = new Map(
      timeline.map((row) => [keyOf(row.run_id, row.event_id), row.sequence]),
    );
    const calls = await platform.rows(
      'execution-meter',
      'select run_id, agent_instance, call_id, events from calls',
    );
    const shown = (runId: string, agent: string) =>
      `timeline ${timelineOf(timeline, runId, agent)}; calls ${callsOf(calls, runId, agent)}`;
    const emitted = new Set<string>();
    const problems: string[] = [];
    for (const emitter of HOOK_EMITTER_NAMES) {
      const last = new Map<string, { readonly position: number; readonly description: string }>();
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
        const before = last.get(`${runId} ${agent}`);
        if (before !== undefined && position < before.position) {
          const places = `${position} before ${before.position}, ${before.description}`;
          problems.push(`out of order: ${description} at ${places}: ${shown(runId, agent)}`);
        }
        last.set(`${runId} ${agent}`, { position, description });
      }
    }
    for (const { run_id: runId, event_id: eventId, entry } of timeline) {
      const hook = hookOf(entry);
      if (hook === undefined || emitted.has(keyOf(runId, eventId))) continue;
      const { type, emitter, agent, step, callId } = hook;
      const name = enumValueName(type);
      const where = `${emitter}, ${agent?.instance}, step ${step}, call ${callId}`;
      problems.push(`unexpected: ${name} of ${runId} (${eventId}) from ${where}`);
    }
    return problems;
  },
};

type Row = Readonly<Record<string, unknown>>;

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

function enumValueName(type: HookEventType): string {
  return Object.entries(HookEventType).find(([, value]) => value === type)?.[0] ?? String(type);
}

/** Returns the events of one agent on the timeline of a run: position, type, step, call and attempt of each event. */
function timelineOf(timeline: readonly Row[], runId: string, agent: string): string {
  return timeline
    .filter((row) => row.run_id === runId)
    .toSorted((left, right) => Number(left.sequence) - Number(right.sequence))
    .flatMap(({ sequence, entry }) => {
      const hook = hookOf(entry);
      if (hook?.agent?.instance !== agent) return [];
      return [`${sequence} ${enumValueName(hook.type)} step ${hook.step} ${nameOf(hook)}`];
    })
    .join(', ');
}

/** Returns the events that the meter has recorded with the calls of an agent and that the worker forwards. */
function callsOf(calls: readonly Row[], runId: string, agent: string): string {
  return calls
    .filter((row) => row.run_id === runId && row.agent_instance === agent)
    .flatMap(({ events }) => JSON.parse(String(events)) as string[])
    .map((event) => fromBinary(HookEventSchema, Buffer.from(event, 'base64')))
    .map((hook) => `${enumValueName(hook.type)} ${nameOf(hook)}`)
    .join(', ');
}

function nameOf({ callId, attempt }: HookEvent): string {
  return `${callId} ${attempt}`;
}

/** A timeline also holds decisions and results, which are not hook events. */
function hookOf(entry: unknown): HookEvent | undefined {
  const event = fromBinary(RunEventSchema, entry as Uint8Array);
  return event.entry.case === 'hook' ? event.entry.value : undefined;
}

function timelineId(emitter: string, eventId: string): string {
  return emitter === 'agent-worker' ? derivedId('evt', emitter, eventId) : eventId;
}

function keyOf(runId: unknown, eventId: unknown): string {
  return `${runId} ${eventId}`;
}
