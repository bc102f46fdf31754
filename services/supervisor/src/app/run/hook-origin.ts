import { type BusMessage, HOOK_EMITTERS, type HookEmitter, hookSubject } from '@writ/bus';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId, isWritError } from '@writ/kernel';

const NAMES = new Map<HookEventType, string>(
  Object.entries(HookEventType).map(([name, type]) => [type, name]),
);

/**
 * Whether a message is what its subject says. The bus lets a service publish to the subjects of its own
 * events only, so the subject is what can be trusted: an event that claims another tenant, run, agent
 * or emitter is nobody's (HK-1, SYS-6).
 */
export function isOwnEvent(event: HookEvent, { subject, eventId }: BusMessage): boolean {
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
    return own === subject && emits(emitter, name);
  } catch (error) {
    if (isWritError(error)) return false;
    throw error;
  }
}

/**
 * What an event is known by in its timeline. Ids can be computed by whoever knows a call, so those of a
 * worker's events are set apart: it cannot take the place of what others will say of that call.
 */
export function timelineId({ emitter, eventId }: HookEvent): string {
  return emitter === 'agent-worker' ? derivedId('evt', emitter, eventId) : eventId;
}

function emits(emitter: string, name: string): boolean {
  // The supervisor tells of the tool calls of a gateway that has no bus.
  const alsoToolCalls = emitter === 'supervisor' && emits('tool-gateway', name);
  return alsoToolCalls || (isEmitter(emitter) && HOOK_EMITTERS[emitter].some((it) => it === name));
}

function isEmitter(name: string): name is HookEmitter {
  return Object.hasOwn(HOOK_EMITTERS, name);
}
