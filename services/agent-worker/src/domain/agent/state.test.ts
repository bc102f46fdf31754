import { isTerminal, LIVE_STATES, outcomeOf, TERMINAL_STATES } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AgentEvent, DELIVERED, reduceAgent } from './state.ts';

const AT = new Date('2026-01-01T00:00:00Z');
const LATER = new Date('2026-01-01T00:01:00Z');

const stopReason = fc.constantFrom(
  'success',
  'paused',
  'cancelled',
  'deadline',
  'max_steps',
  'budget_exhausted:cost',
  'halted',
  'human_rejected',
  'error:agent_failed',
);

const name = fc.constantFrom('approval:op-1', 'new_source_item', 'resumed');

const time = fc.constantFrom(AT, LATER);

const event: fc.Arbitrary<AgentEvent> = fc.oneof(
  fc.constant({ type: 'tool_called' } as const),
  fc.constant({ type: 'tool_answered' } as const),
  fc.record({
    type: fc.constant('suspended' as const),
    waitingFor: fc.array(name, { maxLength: 2 }),
    wakeAt: fc.option(time, { nil: undefined }),
  }),
  fc.record({ type: fc.constant('parked' as const), until: time }),
  fc.record({ type: fc.constant('preempted' as const) }),
  fc.record({ type: fc.constant('signalled' as const), name }),
  fc.record({ type: fc.constant('claimed' as const), at: time }),
  fc.record({ type: fc.constant('ended' as const), stopReason }),
);

describe('the state of an agent', () => {
  it('becomes terminal at most once, with the first stop reason (AG-7, RT-4)', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const first = events.find(({ type }) => type === 'ended');
        const states = new Set<string>();
        let status = DELIVERED;
        for (const next of events) {
          status = reduceAgent(status, next);
          if (isTerminal(status.state)) states.add(`${status.state} ${status.stopReason}`);
        }
        const expected =
          first?.type === 'ended'
            ? [`${outcomeOf(first.stopReason).state} ${first.stopReason}`]
            : [];
        expect([...states]).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('is a known state and has a stop reason if and only if it is terminal (AG-7)', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const { state, stopReason: reason, waitingFor } = events.reduce(reduceAgent, DELIVERED);
        expect([...LIVE_STATES, ...TERMINAL_STATES]).toContain(state);
        expect(reason !== undefined).toBe(isTerminal(state));
        if (state === 'PARKED') expect(['', 'slot']).toContain(waitingFor.join());
        else if (state !== 'SUSPENDED') expect(waitingFor).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('wakes a suspended agent for its signals and when it is due (AG-7)', () => {
    const asleep = reduceAgent(DELIVERED, {
      type: 'suspended',
      waitingFor: ['approval:op-1'],
      wakeAt: LATER,
    });
    const after = (next: AgentEvent) => reduceAgent(asleep, next).state;
    expect(after({ type: 'signalled', name: 'approval:op-2' })).toBe('SUSPENDED');
    expect(after({ type: 'signalled', name: 'approval:op-1' })).toBe('RUNNING');
    expect(after({ type: 'claimed', at: AT })).toBe('SUSPENDED');
    expect(after({ type: 'claimed', at: LATER })).toBe('RUNNING');
  });

  it('resumes a parked agent on the signal `resumed` or when it is due (AG-7)', () => {
    const parked = reduceAgent(DELIVERED, { type: 'parked', until: LATER });
    expect(reduceAgent(parked, { type: 'signalled', name: 'resumed' }).state).toBe('RUNNING');
    expect(reduceAgent(parked, { type: 'signalled', name: 'approval:op-1' }).state).toBe('PARKED');
    expect(reduceAgent(parked, { type: 'claimed', at: AT }).state).toBe('PARKED');
    expect(reduceAgent(parked, { type: 'claimed', at: LATER }).state).toBe('RUNNING');
  });

  it('keeps a preempted agent parked until it is resumed or its approval arrives (SB-4, AG-7)', () => {
    const preempted = reduceAgent(DELIVERED, { type: 'preempted' });
    expect(preempted).toMatchObject({ state: 'PARKED', waitingFor: ['slot'] });
    expect(reduceAgent(preempted, { type: 'claimed', at: LATER }).state).toBe('PARKED');
    expect(reduceAgent(preempted, { type: 'signalled', name: 'slot' }).state).toBe('PARKED');
    expect(reduceAgent(preempted, { type: 'signalled', name: 'resumed' }).state).toBe('RUNNING');
    const asks = reduceAgent(DELIVERED, { type: 'preempted', approval: 'approval:part_1' });
    expect(reduceAgent(asks, { type: 'signalled', name: 'approval:part_2' }).state).toBe('PARKED');
    expect(reduceAgent(asks, { type: 'signalled', name: 'approval:part_1' }).state).toBe('RUNNING');
  });

  it('is WAITING_FOR_TOOL only during a tool call (AG-7)', () => {
    const called = reduceAgent(DELIVERED, { type: 'tool_called' });
    expect(called.state).toBe('WAITING_FOR_TOOL');
    expect(reduceAgent(called, { type: 'tool_answered' }).state).toBe('RUNNING');
  });
});
