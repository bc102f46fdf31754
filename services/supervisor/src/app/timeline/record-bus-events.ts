import type { BusMessage, DurableOptions } from '@writ/bus';
import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { isId, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { noteLeaseExpiry, noteSlotChange } from '../../store/agent/pauses.ts';
import { noteWait } from '../../store/agent/waits.ts';
import { type EventKey, recordedEvents } from '../../store/run/recorded-events.ts';
import { findRun, type RunRow } from '../../store/run/runs.ts';
import { findSequence, lookUpEvents } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { inCausalOrder, predecessorsOf } from '../../wire/causal-order.ts';
import {
  isOnTimeline,
  readHookEvent,
  runOfSubject,
  slotChangeFrom,
  timelineId,
  timelineIdOfMessage,
  waitChangeFrom,
  workerEventId,
} from '../../wire/hook-event.ts';
import { notificationOf } from '../../wire/notification.ts';
import type { Notify } from '../notify/notify.ts';
import { appendEvent } from './carried-events.ts';
import type { HeldEvents } from './held-events.ts';

/** Maximum number of runs for which events are recorded at the same time. Concurrent transactions share commits. */
const RUNS_AT_ONCE = 16;

/**
 * Returns message handlers that append hook events to the timelines of their runs (HK-1) and apply pauses, expired
 * leases and waits that spawn-budget reports (SB-4, EM-1). They discard events of unknown runs, malformed events, and
 * events that do not match their subject. An event that arrives before its predecessors is held in memory until one of
 * the following: the predecessors are on the timeline, the agent has another review that is not a repeat, the agent
 * reports its outcome or ends, or the run ends; HeldEvents drops held events above its memory limit.
 */
export function recordBusEvents({
  store,
  clock,
  heldEvents,
  notify,
  telemetry: { log },
}: Pick<SupervisorContext, 'store' | 'clock' | 'heldEvents' | 'notify' | 'telemetry'>): Pick<
  Required<DurableOptions>,
  'handler' | 'handleAll'
> & { readonly releaseHeld: () => Promise<void> } {
  const read = (message: BusMessage): HookEvent[] => {
    const { eventId, subject } = message;
    // Most events were already received with requests of workers and recorded (CO-1); they need not be decoded.
    const eventOfRun = { ...runOfSubject(subject), eventId: timelineIdOfMessage(message) };
    if (heldEvents.isRecorded(eventOfRun)) return [];
    const event = readHookEvent(message);
    // The supervisor's own events are appended to the timeline in the transactions that emit them.
    if (event?.emitter === 'supervisor') return [];
    if (event !== undefined) return [event];
    log.warn(
      { event_id: isId(eventId) ? eventId : undefined, subject },
      'dropped an event: malformed, or does not match its subject',
    );
    return [];
  };
  const recordOne = async ({ key, events }: RunEvents): Promise<void> => {
    const waiting = await store.transaction(
      async (trx) => {
        const run = await findRun(trx, key);
        if (run === undefined) {
          logUnknown({ key, events });
          return [];
        }
        const pool = [...heldEvents.of(key), ...events];
        return await recordRun({ trx, run, heldEvents, notify }, pool, clock.now());
      },
      { run: key, background: true },
    );
    heldEvents.hold(key, waiting);
  };
  const logUnknown = ({ key: { runId: run_id }, events }: RunEvents): void => {
    log.debug({ event_ids: events.map(({ eventId }) => eventId), run_id }, 'events of unknown run');
  };
  // One transaction for each run, so that no run waits for the events of all runs; concurrent transactions share
  // commits.
  const record = async (all: readonly RunEvents[]): Promise<void> => {
    const ofRuns = all.filter(({ key }) => key.runId !== '');
    for (const events of all) if (!ofRuns.includes(events)) logUnknown(events);
    for (let from = 0; from < ofRuns.length; from += RUNS_AT_ONCE) {
      await Promise.all(ofRuns.slice(from, from + RUNS_AT_ONCE).map(recordOne));
    }
  };
  // Another replica may have recorded these events when it received them with requests. One read for all runs checks
  // this, so that recorded events do not require a transaction for each run (CO-1).
  const unrecorded = async (events: readonly HookEvent[]): Promise<readonly HookEvent[]> => {
    if (!store.replicas.shared) return events;
    const shown = new Set(events.filter((event) => isOnlyShown(event) && !heldEvents.has(event)));
    const isRecorded = await recordedEvents(store.db, [...shown].map(keyOf));
    return events.filter((event) => !(shown.has(event) && isRecorded(keyOf(event))));
  };
  const handleAll = async (messages: readonly BusMessage[]): Promise<void> => {
    const events = await unrecorded(messages.flatMap(read));
    if (events.length > 0) await record(byRun(events));
  };
  return {
    handler: (message) => handleAll([message]),
    handleAll,
    async releaseHeld() {
      const runs = heldEvents.runs().map((key) => ({ key, events: [] }));
      if (runs.length > 0) await record(runs);
    },
  };
}

/** Events of one run. */
interface RunEvents {
  readonly key: RunKey;
  readonly events: readonly HookEvent[];
}

/** A transaction that records events of a run. */
interface Recording {
  readonly trx: SupervisorTransaction;
  readonly run: RunRow;
  readonly heldEvents: HeldEvents;
  readonly notify: Notify;
}

function byRun(events: readonly HookEvent[]): RunEvents[] {
  const runs = Map.groupBy(events, ({ tenant, runId }) => `${tenant}/${runId}`);
  return [...runs.values()].map((ofRun) => {
    const { tenant = '', runId = '' } = ofRun[0] ?? {};
    return { key: { tenant, runId }, events: ofRun };
  });
}

/** Returns the key of an event on the timeline of its run. */
function keyOf(event: HookEvent): EventKey {
  return { tenant: event.tenant, runId: event.runId, eventId: timelineId(event) };
}

/** Whether an event changes only the timeline, so that recording it again has no effect. */
function isOnlyShown(event: HookEvent): boolean {
  const isNotified = notificationOf(event, new Date(0)) !== undefined;
  return !isNotified && waitChangeFrom(event) === undefined && slotChangeFrom(event) === undefined;
}

/**
 * Records the events whose predecessors are on the timeline, or all events if the run has ended; returns the remaining
 * events.
 */
async function recordRun(
  recording: Recording,
  pool: readonly HookEvent[],
  now: Date,
): Promise<HookEvent[]> {
  const { trx, run } = recording;
  await lookUpEvents(trx, { tenant: run.tenant, runId: run.run_id }, pool.flatMap(idsFor));
  let waiting = inCausalOrder(pool);
  for (let before = Number.POSITIVE_INFINITY; waiting.length < before; ) {
    before = waiting.length;
    const left: HookEvent[] = [];
    for (const event of waiting) {
      if (run.ended_at !== null || (await isOrdered(trx, event)))
        await recordEvent(recording, event, now);
      else left.push(event);
    }
    waiting = left;
  }
  return waiting;
}

/** Returns the event ids that {@link isOrdered} and the append of an event look up. */
function idsFor(event: HookEvent): string[] {
  return [timelineId(event), ...predecessorsOf(event).flatMap((id) => [id, workerEventId(id)])];
}

async function isOrdered(trx: SupervisorTransaction, event: HookEvent): Promise<boolean> {
  const { tenant, runId } = event;
  const isAppended = async (eventId: string) =>
    (await findSequence(trx, { tenant, runId, eventId })) !== undefined;
  if (await isAppended(timelineId(event))) return true;
  for (const id of predecessorsOf(event)) {
    if (!(await isAppended(id)) && !(await isAppended(workerEventId(id)))) return false;
  }
  return true;
}

async function recordEvent(
  { trx, heldEvents, notify }: Recording,
  event: HookEvent,
  now: Date,
): Promise<void> {
  const key = { tenant: event.tenant, runId: event.runId };
  if (isOnTimeline(event)) await appendEvent(trx, heldEvents, event, now);
  await notify(trx, event, now);
  if (event.agent === undefined) return;
  const agent = { ...key, instance: event.agent.instance };
  const wait = waitChangeFrom(event);
  if (wait !== undefined) await noteWait(trx, agent, wait);
  const slot = slotChangeFrom(event);
  if (slot === undefined) return;
  if (slot.change === 'lease_expired') await noteLeaseExpiry(trx, agent, slot.at);
  else await noteSlotChange(trx, agent, slot, now);
}
