import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { CarriedEvent } from '@writ/contracts/writ/timeline/v1/carried_event_pb';
import { isEventMac } from '@writ/identity';
import { type AgentKey, isId, type RunKey } from '@writ/kernel';
import type { SupervisorContext, Tx } from '../../context.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { appendTimeline, lookUpEvents } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { inCausalOrder } from '../../wire/causal-order.ts';
import { emits, hasValidTime, timelineId } from '../../wire/hook-event.ts';
import { decodeHook, encodeHook } from '../../wire/timeline.ts';
import type { HeldEvents } from './held-events.ts';

/** Appends an event to the timeline of its run, unless the timeline already contains it. */
export async function appendEvent(
  trx: SupervisorTransaction,
  heldEvents: HeldEvents,
  event: HookEvent,
  at: Date,
): Promise<void> {
  const { tenant, runId } = event;
  const eventId = timelineId(event);
  const entry = encodeHook(event);
  await appendTimeline(trx, { tenant, runId, eventId, entry }, at);
  heldEvents.noteRecorded(trx, { tenant, runId }, [eventId]);
}

/**
 * Appends the events that a worker sends with a request of an agent, before the entries that the request causes, such
 * as its decision (HK-1). Discards malformed events, events of other runs or agents, events of services other than the
 * worker and the meter, events of a type that their service does not emit, and meter events without a valid MAC.
 */
export async function recordCarriedEvents(
  tx: Tx,
  agent: AgentKey,
  carried: readonly CarriedEvent[],
): Promise<void> {
  if (carried.length === 0) return;
  const run = await loadRun(tx.trx, agent);
  const events = carried.flatMap((each) => readCarried(tx.context, run, each) ?? []);
  const own = events.filter((event) => isOf(event, agent));
  await appendEvents(tx, agent, own);
}

/**
 * Appends the held events of an agent, that is, events that the bus delivered before their predecessors: no later
 * request of the agent will contain the predecessors. Not called for a repeated review, because the agent may have
 * continued after the first review, and its next request then contains the predecessors.
 */
export async function recordHeldEvents(tx: Tx, agent: AgentKey): Promise<void> {
  const held = tx.context.heldEvents.of(agent).filter((event) => isOf(event, agent));
  await appendEvents(tx, agent, inCausalOrder(held));
}

async function appendEvents(
  { trx, at, context }: Tx,
  run: RunKey,
  events: readonly HookEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await lookUpEvents(trx, run, events.map(timelineId));
  for (const event of events) await appendEvent(trx, context.heldEvents, event, at);
}

/** The last events of agents that end, as the worker and the meter return them. */
export interface LastEvents {
  readonly carried: readonly CarriedEvent[];
  /** Encoded events of the meter. */
  readonly metered: readonly Uint8Array[];
}

/**
 * Appends the last events of agents whose calls have ended, including events that only the bus has delivered. A key
 * without `instance` selects all agents of the run.
 */
export async function recordLastEvents(
  tx: Tx,
  key: RunKey & { readonly instance?: string },
  { carried, metered }: LastEvents,
): Promise<void> {
  const { trx, context } = tx;
  const run = await loadRun(trx, key);
  const found = [
    ...carried.flatMap((each) => readCarried(context, run, each) ?? []),
    ...metered.map((event) => decodeHook(event)),
    ...context.heldEvents.of(key),
  ];
  const { instance } = key;
  const concerned =
    instance === undefined ? found : found.filter((event) => isOf(event, { ...key, instance }));
  await appendEvents(tx, key, inCausalOrder(concerned));
}

function isOf({ tenant, runId, agent }: HookEvent, key: AgentKey): boolean {
  return tenant === key.tenant && runId === key.runId && agent?.instance === key.instance;
}

/**
 * Decodes an event that a worker sent; returns undefined for a malformed event, for an event of another run or of a
 * service other than the worker and the meter, for an event of a type that its service does not emit, and for a meter
 * event without a valid MAC.
 */
function readCarried(
  { telemetry }: SupervisorContext,
  run: RunRow,
  { event: bytes, mac }: CarriedEvent,
): HookEvent | undefined {
  const event = decoded(bytes);
  const { tenant, run_id: runId } = run;
  const isOfRun = event?.tenant === tenant && event.runId === runId;
  if (event !== undefined && isOfRun && isId(event.eventId) && hasValidTime(event)) {
    if (isGenuine(event, run, bytes, mac)) return event;
  }
  telemetry.log.warn(
    { tenant, run_id: runId, ...(event && isId(event.eventId) && { event_id: event.eventId }) },
    'discarded an event from a worker: malformed, wrong run or emitter, or invalid MAC',
  );
  return undefined;
}

function isGenuine(
  { emitter, type }: HookEvent,
  { event_key: key }: RunRow,
  bytes: Uint8Array,
  mac: Uint8Array,
): boolean {
  if (!emits(emitter, type)) return false;
  if (emitter === 'agent-worker') return true;
  return emitter === 'execution-meter' && isEventMac(Buffer.from(key, 'hex'), bytes, mac);
}

function decoded(bytes: Uint8Array): HookEvent | undefined {
  try {
    return decodeHook(bytes);
  } catch {
    return undefined;
  }
}
