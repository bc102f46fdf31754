import { create, toJson } from '@bufbuild/protobuf';
import { HOOK_EMITTERS, hookSubject } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { describe, expect, it } from 'vitest';
import { hasValidTime, matchesSubject, timelineId, timelineIdOfMessage } from './hook-event.ts';

type Claim = Partial<Pick<HookEvent, 'tenant' | 'runId' | 'type' | 'emitter' | 'eventId'>> & {
  readonly agent?: { readonly name: string; readonly instance: string };
};

function matches(change: Claim = {}, eventId = 'evt_1'): boolean {
  const agent = { name: 'writer', instance: 'writer-1' };
  const subject = hookSubject({ tenant: 't1', runId: 'r1', agent: 'writer-1', event: 'STEP_END' });
  const event = create(HookEventSchema, {
    eventId: 'evt_1',
    type: HookEventType.STEP_END,
    emitter: 'agent-worker',
    tenant: 't1',
    runId: 'r1',
    agent,
    ...change,
  });
  return matchesSubject(event, { eventId, subject, payload: new Uint8Array(), headers: {} });
}

describe('hook events', () => {
  it('match the subject of their own tenant, run, agent and emitter (HK-1)', () => {
    expect(matches()).toBe(true);
  });

  it('do not match a subject of another tenant, run, agent or emitter (HK-1, SYS-6)', () => {
    const claims: Claim[] = [
      { tenant: 't2' },
      { runId: 'r2' },
      { runId: 'A run.>' },
      { agent: { name: 'writer', instance: 'writer-2' } },
      { type: HookEventType.TOOL_END },
      { type: HookEventType.AGENT_PAUSED, emitter: 'spawn-budget' },
      { emitter: 'supervisor' },
      { emitter: 'toString' },
      { emitter: '' },
      { eventId: 'evt_2' },
    ];
    for (const claim of claims) expect([claim, matches(claim)]).toEqual([claim, false]);
    expect(matches({}, 'evt_other')).toBe(false);
  });

  it.each([
    [undefined, true],
    [{ seconds: -62_135_596_800n, nanos: 0 }, true],
    [{ seconds: 253_402_300_799n, nanos: 999_999_999 }, true],
    [{ seconds: -62_135_596_801n, nanos: 0 }, false],
    [{ seconds: 253_402_300_800n, nanos: 0 }, false],
    [{ seconds: 0n, nanos: -1 }, false],
    [{ seconds: 0n, nanos: 1_000_000_000 }, false],
  ])('have a time that can be encoded as JSON: %o: %s (HK-1)', (eventTime, isValid) => {
    const event = create(HookEventSchema, { ...(eventTime && { eventTime }) });
    expect(hasValidTime(event)).toBe(isValid);
    if (isValid) toJson(HookEventSchema, event);
    else expect(() => toJson(HookEventSchema, event)).toThrow();
  });

  it('have an emitter for each type (HK-1)', () => {
    const emitted = Object.values(HOOK_EMITTERS).flat();
    const types = Object.keys(HookEventType).filter((name) => name !== 'UNSPECIFIED');
    expect(emitted.toSorted()).toEqual(types.toSorted());
  });

  it('get a separate timeline id when a worker emits them (HK-1)', () => {
    const of = (emitter: string) => timelineId(create(HookEventSchema, { emitter, eventId: 'e' }));
    expect(of('tool-gateway')).toBe('e');
    expect(of('agent-worker')).toBe(of('agent-worker'));
    expect(of('agent-worker')).not.toBe('e');
  });

  it('have the same timeline id as their messages (HK-1, CO-1)', () => {
    const ofMessage = (event: string) =>
      timelineIdOfMessage({
        eventId: 'e',
        subject: hookSubject({ tenant: 't1', runId: 'r1', event }),
        payload: new Uint8Array(),
        headers: {},
      });
    for (const [emitter, names] of Object.entries(HOOK_EMITTERS)) {
      const id = timelineId(create(HookEventSchema, { emitter, eventId: 'e' }));
      expect(names.map(ofMessage)).toEqual(names.map(() => id));
    }
  });
});
