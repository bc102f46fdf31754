import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CallEvent, type CallState, type Ending, transition } from './call-state.ts';
import { SIDE_EFFECTS, type SideEffect } from './tool.ts';

const ENDINGS: readonly Ending[] = ['ok', 'failed', 'lost', 'interrupted'];
const RECEIPTS: readonly CallState[] = ['refused', 'ok', 'error', 'unknown', 'burnt'];

const event: fc.Arbitrary<CallEvent> = fc.oneof(
  fc.record({ kind: fc.constant('call' as const), admitted: fc.boolean() }),
  fc.record({ kind: fc.constant('end' as const), ending: fc.constantFrom(...ENDINGS) }),
  fc.constant({ kind: 'crash' as const }),
  fc.constant({ kind: 'void' as const }),
  fc.record({ kind: fc.constant('resolve' as const), done: fc.boolean() }),
);

/** A plain model of TG-5: executions and receipts. */
class Model {
  executions = 0;
  isRunning = false;
  receipts: CallState[] = [];

  apply(effect: string, next: CallState, given: CallEvent): void {
    if (given.kind === 'crash' || (given.kind === 'end' && effect !== 'reject'))
      this.isRunning = false;
    if (effect === 'execute') {
      this.executions += 1;
      this.isRunning = true;
    }
    if (effect === 'record') this.receipts.push(next);
  }
}

function apply(sideEffect: SideEffect, events: readonly CallEvent[]): Model {
  const model = new Model();
  let state: CallState = 'none';
  for (const given of events) {
    const before = model.receipts.length;
    const wasRunning = model.isRunning;
    const { next, effect } = transition(state, given, sideEffect);
    model.apply(effect, next, given);
    // One execution at a time, none after a receipt.
    if (effect === 'execute') {
      expect(wasRunning).toBe(false);
      expect(before).toBe(0);
    }
    expect(next === 'running').toBe(model.isRunning);
    if (RECEIPTS.includes(state) && effect !== 'record') expect(next).toBe(state);
    state = next;
  }
  return model;
}

describe('the state machine of a call (TG-1, TG-5, TG-8)', () => {
  it('executes a destructive tool at most once under any repeats, crashes, voids and resolutions', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        expect(apply('destructive', events).executions).toBeLessThanOrEqual(1);
      }),
      { numRuns: 500 },
    );
  });

  it('records one outcome, and a second one only when an operator resolves an unknown outcome', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SIDE_EFFECTS),
        fc.array(event, { maxLength: 30 }),
        (sideEffect, events) => {
          const { receipts } = apply(sideEffect, events);
          const [first, second] = receipts;
          expect(receipts.length).toBeLessThanOrEqual(first === 'unknown' ? 2 : 1);
          if (second !== undefined) expect(['ok', 'error']).toContain(second);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('records a receipt for every destructive call that was executed and no longer runs', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const { executions, isRunning, receipts } = apply('destructive', events);
        if (executions === 1 && !isRunning) expect(receipts).not.toHaveLength(0);
      }),
      { numRuns: 500 },
    );
  });

  it('runs read-only and idempotent tools again after a crash, and no destructive tool (TG-5)', () => {
    const after = (sideEffect: SideEffect) => transition('running', { kind: 'crash' }, sideEffect);
    expect(after('read_only')).toEqual({ next: 'interrupted', effect: 'keep' });
    expect(after('idempotent')).toEqual({ next: 'interrupted', effect: 'keep' });
    expect(after('destructive')).toEqual({ next: 'unknown', effect: 'record' });
    expect(transition('interrupted', { kind: 'call', admitted: true }, 'idempotent').effect).toBe(
      'execute',
    );
  });

  it('treats a lost response as an error only for a read-only tool (SYS-4)', () => {
    const lost = (sideEffect: SideEffect) =>
      transition('running', { kind: 'end', ending: 'lost' }, sideEffect).next;
    expect(SIDE_EFFECTS.map(lost)).toEqual(['error', 'unknown', 'unknown']);
  });

  it('burns a call that was never made and settles an interrupted call (TG-8)', () => {
    const voided = (state: CallState, sideEffect: SideEffect) =>
      transition(state, { kind: 'void' }, sideEffect);
    expect(voided('none', 'destructive')).toEqual({ next: 'burnt', effect: 'record' });
    expect(voided('burnt', 'destructive')).toEqual({ next: 'burnt', effect: 'answer' });
    expect(voided('running', 'destructive')).toEqual({ next: 'running', effect: 'join' });
    expect(voided('interrupted', 'idempotent')).toEqual({ next: 'unknown', effect: 'record' });
    expect(voided('interrupted', 'read_only')).toEqual({ next: 'error', effect: 'record' });
  });

  it('never runs a destructive tool again, even when its outcome could not be written (TG-5)', () => {
    expect(transition('interrupted', { kind: 'call', admitted: true }, 'destructive')).toEqual({
      next: 'unknown',
      effect: 'record',
    });
  });
});
