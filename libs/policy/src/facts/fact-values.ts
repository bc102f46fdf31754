import type { FactValue, Policy } from '../types.ts';
import type { CallEffect, Facts } from './fact-types.ts';

/** Returns the facts of a new run (SV-3). */
export function initialFacts(policy: Policy): Facts {
  return {
    base: Object.fromEntries(policy.facts.map(({ name, initial }) => [name, initial])),
    calls: [],
  };
}

/**
 * Returns the values that rules read (SV-3): for a cap, its initial value plus the counts of settled calls, pending
 * calls and calls with an unknown outcome; for a gate, the value set by the last call that changed it.
 */
export function factValues(policy: Policy, facts: Facts): Readonly<Record<string, FactValue>> {
  const values = policy.facts.map(({ name, kind, initial }) => {
    const stored = facts.base[name];
    const start = typeof stored === typeof initial ? (stored ?? initial) : initial;
    const value = kind === 'cap' ? total(name, Number(start), facts) : latest(name, start, facts);
    return [name, value] as const;
  });
  return Object.fromEntries(values);
}

function total(name: string, start: number, facts: Facts): number {
  const sum = facts.calls.reduce((value, call) => value + contribution(name, call), start);
  return Math.min(sum, Number.MAX_SAFE_INTEGER);
}

function contribution(name: string, call: CallEffect): number {
  const open = call.state === 'pending' || call.state === 'unknown';
  return Number((open ? call.counted[name] : call.settled[name]) ?? 0);
}

function latest(name: string, start: FactValue, facts: Facts): FactValue {
  return facts.calls.reduce((value, call) => call.settled[name] ?? value, start);
}
