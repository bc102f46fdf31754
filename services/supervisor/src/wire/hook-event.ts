import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type BusMessage, HOOK_EMITTERS, type HookEmitter, hookSubject } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { codeWaitFrom, derivedId, isId, isWritError, type RunKey } from '@writ/kernel';
import type { SlotChange } from '../domain/agent/pause.ts';
import type { WaitChange } from '../store/agent/waits.ts';

const NAMES = new Map<HookEventType, string>(
  Object.entries(HookEventType).map(([name, type]) => [type, name]),
);

/**
 * Maximum number of predecessors that an event on the bus may name. A worker names at most 192: 128 outcomes of calls
 * and 64 events.
 */
const MAX_AFTER = 2_048;

/** The times that protobuf permits: the years 1 to 9999, Unix time in s. */
const MIN_SECONDS = -62_135_596_800n;
const MAX_SECONDS = 253_402_300_799n;

/** Decodes the hook event of a bus message; undefined if it is malformed or {@link matchesSubject} is false. */
export function readHookEvent(message: BusMessage): HookEvent | undefined {
  const event = decoded(message.payload);
  if (event === undefined || !isWellFormed(event)) return undefined;
  return matchesSubject(event, message) ? event : undefined;
}

function decoded(payload: Uint8Array): HookEvent | undefined {
  try {
    return fromBinary(HookEventSchema, payload);
  } catch {
    return undefined;
  }
}

/** Whether an event has valid ids and a valid time, so that it can be stored. */
function isWellFormed({ eventId, after, eventTime }: HookEvent): boolean {
  if (!isId(eventId) || after.length > MAX_AFTER || !after.every(isId)) return false;
  return hasValidTime({ eventTime });
}

/** Whether the time of an event is a valid Timestamp of protobuf, so that it can be encoded as JSON. */
export function hasValidTime({ eventTime }: Pick<HookEvent, 'eventTime'>): boolean {
  if (eventTime === undefined) return true;
  const { seconds, nanos } = eventTime;
  return seconds >= MIN_SECONDS && seconds <= MAX_SECONDS && nanos >= 0 && nanos < 1_000_000_000;
}

/** The run in the subject of a hook event. */
export function runOfSubject(subject: string): RunKey {
  const [, , , tenant = '', runId = ''] = subject.split('.');
  return { tenant, runId };
}

/**
 * Whether an event matches the subject of its message. The bus lets a service publish only to the subjects of its
 * own events, so the subject is trustworthy: an event that claims another tenant, run, agent or emitter is rejected
 * (HK-1, SYS-6).
 */
export function matchesSubject(event: HookEvent, { subject, eventId }: BusMessage): boolean {
  const name = NAMES.get(event.type);
  if (name === undefined || event.eventId !== eventId) return false;
  const { tenant, runId, agent, emitter } = event;
  try {
    const own = hookSubject({
      tenant: tenant || undefined,
      runId: runId || undefined,
      agent: agent?.instance || undefined,
      event: name,
    });
    return own === subject && emitsName(emitter, name);
  } catch (error) {
    if (isWritError(error)) return false;
    throw error;
  }
}

/**
 * Returns the id of an event on its timeline. Event ids can be computed from a call, so the events of a worker get
 * separate ids: a worker cannot occupy the id of another emitter's event for the same call.
 */
export function timelineId({ emitter, eventId }: HookEvent): string {
  return emitter === 'agent-worker' ? workerEventId(eventId) : eventId;
}

/**
 * The {@link timelineId} of the event in a bus message. It depends on the type of the event in the subject, because the
 * bus lets a service publish only types of its own events.
 */
export function timelineIdOfMessage({ subject, eventId }: BusMessage): string {
  const name = subject.slice(subject.lastIndexOf('.') + 1);
  return emitsName('agent-worker', name) ? workerEventId(eventId) : eventId;
}

/** The {@link timelineId} of a worker's event. */
export function workerEventId(eventId: string): string {
  return derivedId('evt', 'agent-worker', eventId);
}

/** Status of an AGENT_PAUSED event whose cause is an expired lease, not preemption. */
const LEASE_EXPIRED = 'lapsed';

const SLOT_CHANGES: Readonly<Partial<Record<HookEventType, SlotChange['change']>>> = {
  [HookEventType.AGENT_PAUSED]: 'paused',
  [HookEventType.AGENT_RESUMED]: 'resumed',
};

/** The slot change that an event of spawn-budget reports; undefined for other events (SB-4, EM-1). */
export function slotChangeFrom({
  type,
  emitter,
  eventTime,
  status,
}: HookEvent): SlotChange | { readonly change: 'lease_expired'; readonly at: Date } | undefined {
  const change = SLOT_CHANGES[type];
  if (change === undefined || emitter !== 'spawn-budget' || eventTime === undefined) {
    return undefined;
  }
  const at = timestampDate(eventTime);
  return status === LEASE_EXPIRED ? { change: 'lease_expired', at } : { change, at };
}

/**
 * Returns the beginning or end of a wait that an event of spawn-budget reports; undefined for other events (EM-1).
 * AGENT_RESUMED also ends the wait of its agent.
 */
export function waitChangeFrom(event: HookEvent): WaitChange | undefined {
  const { type, emitter, eventTime, waitingFor, slotSequence: sequence } = event;
  if (emitter !== 'spawn-budget' || eventTime === undefined) return undefined;
  const at = timestampDate(eventTime);
  if (type === HookEventType.AGENT_SUSPENDED) {
    return { signals: waitingFor === '' ? [] : waitingFor.split(','), at, sequence };
  }
  const isAwake = type === HookEventType.AGENT_WOKEN || type === HookEventType.AGENT_RESUMED;
  return isAwake ? { signals: undefined, at, sequence } : undefined;
}

/**
 * Returns whether the event is appended to the timeline. The beginning and end of a wait are not, because the state of
 * the run shows them; the beginning of a wait that only an operator can end is appended (BD-6). A budget threshold
 * causes only notifications.
 */
export function isOnTimeline({ type, waitingFor }: HookEvent): boolean {
  if (type === HookEventType.AGENT_SUSPENDED) return codeWaitFrom(waitingFor) !== undefined;
  return type !== HookEventType.AGENT_WOKEN && type !== HookEventType.BUDGET_THRESHOLD;
}

/** Whether a service emits events of a type (HK-1). */
export function emits(emitter: string, type: HookEventType): boolean {
  return emitsName(emitter, NAMES.get(type) ?? '');
}

function emitsName(emitter: string, name: string): boolean {
  // The supervisor emits the tool events of a gateway that has no bus.
  const alsoToolCalls = emitter === 'supervisor' && emitsName('tool-gateway', name);
  return alsoToolCalls || (isEmitter(emitter) && HOOK_EMITTERS[emitter].some((it) => it === name));
}

function isEmitter(name: string): name is HookEmitter {
  return Object.hasOwn(HOOK_EMITTERS, name);
}
