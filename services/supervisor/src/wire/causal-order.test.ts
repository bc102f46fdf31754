import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inCausalOrder, predecessorsOf } from './causal-order.ts';

const AGENT = 'agent-1';
const idOf = (...parts: string[]) => derivedId('evt', 'run-1', AGENT, ...parts);

type Fields = Omit<MessageInitShape<typeof HookEventSchema>, '$typeName'>;

function event(name: keyof typeof HookEventType, fields: Fields = {}): HookEvent {
  const { callId = '', step = 1 } = fields;
  const isMetered = name.startsWith('LLM');
  const fact = callId === '' ? `step-${step}` : callId;
  return create(HookEventSchema, {
    eventId: idOf(fact, name, ...(isMetered ? ['1'] : [])),
    type: HookEventType[name],
    emitter: isMetered ? 'execution-meter' : 'agent-worker',
    runId: 'run-1',
    agent: { name: 'agent', instance: AGENT },
    step,
    attempt: isMetered ? 1 : 0,
    ...fields,
  });
}

/** The events of steps in which guardrails ask the model again after each answer. */
function eventsOf(steps: number, callsInStep: number): HookEvent[] {
  return Array.from({ length: steps }, (_, at) => {
    const step = at + 1;
    const earlier: string[] = [];
    const calls = Array.from({ length: callsInStep }, (__, number) => {
      const call = { step, callId: `op-${step}-${2 * number}` };
      const started = event('LLM_START', { ...call, after: [...earlier] });
      const ended = event('LLM_END', call);
      earlier.push(ended.eventId);
      const callId = `op-${step}-${2 * number + 1}`;
      const tripped = event('GUARDRAIL_TRIP', { step, callId, after: [...earlier] });
      earlier.push(tripped.eventId);
      return [started, ended, tripped];
    });
    const lastStep = step > 1 ? [idOf(`step-${at}`, 'STEP_END')] : [];
    return [
      event('STEP_START', { step, after: lastStep }),
      ...calls.flat(),
      event('STEP_END', { step, after: earlier }),
    ];
  }).flat();
}

describe('inCausalOrder', () => {
  it('orders the events of steps with several model calls, however they arrive (HK-1)', () => {
    const cases = fc
      .record({ steps: fc.integer({ min: 1, max: 4 }), calls: fc.integer({ min: 0, max: 4 }) })
      .chain(({ steps, calls }) => {
        const events = eventsOf(steps, calls);
        const shuffled = fc.shuffledSubarray(events, { minLength: events.length });
        return fc.record({ events: fc.constant(events), shuffled });
      });
    fc.assert(
      fc.property(cases, ({ events, shuffled }) => {
        expect(inCausalOrder(shuffled)).toEqual(events);
      }),
    );
  });

  it('returns every event once, even when events name each other as predecessors (HK-1)', () => {
    const events = eventsOf(2, 2);
    const ids = fc.constantFrom(...events.map(({ eventId }) => eventId), 'unknown', '');
    const afters = fc.array(fc.array(ids, { maxLength: 3 }), {
      minLength: events.length,
      maxLength: events.length,
    });
    fc.assert(
      fc.property(afters, (after) => {
        const changed = events.map((each, at) => ({ ...each, after: after[at] ?? [] }));
        const ordered = inCausalOrder(changed);
        expect(ordered).toHaveLength(events.length);
        expect(new Set(ordered)).toEqual(new Set(changed));
      }),
    );
  });

  it('orders a chain of any length (HK-1, BD-1)', () => {
    const length = 20_000;
    const chain = Array.from({ length }, (_, at) =>
      event('LOG_ENTRY', {
        step: 0,
        callId: `op-${at}`,
        after: at === 0 ? [] : [idOf(`op-${at - 1}`, 'LOG_ENTRY')],
      }),
    );
    expect(inCausalOrder(chain.toReversed())).toEqual(chain);
  });
});

describe('predecessorsOf', () => {
  it.each(['LLM_START', 'BUDGET_EXHAUSTED', 'GUARDRAIL_TRIP', 'LOG_ENTRY', 'STEP_END'] as const)(
    '%s follows the start of its step and the events that it names in `after` (HK-1)',
    (name) => {
      const before = predecessorsOf(event(name, { callId: 'op-1', after: ['evt_1'] }));
      expect(before).toEqual([idOf('step-1', 'STEP_START'), 'evt_1']);
    },
  );
});
