import { InvalidRequestError } from '@writ/kernel';
import { countsOf } from './fact-counts.ts';
import { settle } from './fact-settlement.ts';
import {
  CALL_STATES,
  type CallEffect,
  type CallState,
  type FactReceipt,
  type Facts,
} from './fact-types.ts';
import type { FactValue, Policy, ProposedAction } from './types.ts';
import { updatesFor } from './updates.ts';

/** The facts of a new run (SV-3). */
export function initialFacts(policy: Policy): Facts {
  return {
    base: Object.fromEntries(policy.facts.map(({ name, initial }) => [name, initial])),
    calls: [],
  };
}

/** The values that rules see: for a cap, what is settled and what is pending together (SV-3). */
export function factValues(policy: Policy, facts: Facts): Readonly<Record<string, FactValue>> {
  const values = policy.facts.map(({ name, kind, initial }) => {
    const stored = facts.base[name];
    const start = typeof stored === typeof initial ? (stored ?? initial) : initial;
    const value = kind === 'cap' ? total(name, Number(start), facts) : latest(name, start, facts);
    return [name, value] as const;
  });
  return Object.fromEntries(values);
}

/**
 * Counts an approved action for every cap it concerns, at once (SV-3). The same call counts once.
 * @throws InvalidRequestError POLICY_EVALUATION_FAILED when a count cannot be computed; a review that
 * approved the action has made sure that it can
 */
export function applyPending(
  policy: Policy,
  facts: Facts,
  callId: string,
  action: ProposedAction,
): Facts {
  const { kind, name: tool } = action;
  if (kind !== 'tool' || tool === undefined || updatesFor(policy, tool).length === 0) return facts;
  const { counts: counted, failed } = countsOf(policy, action);
  if (failed !== undefined) {
    const message = `What the action counts for in the fact ${failed} cannot be computed.`;
    throw new InvalidRequestError('POLICY_EVALUATION_FAILED', message, { fact: failed });
  }
  const known = facts.calls.find((call) => call.callId === callId);
  if (known === undefined) {
    const fresh = { callId, tool, state: 'pending', counted, settled: {}, problems: [] } as const;
    return { ...facts, calls: [...facts.calls, fresh] };
  }
  if (known.state !== 'pending') return facts;
  const larger = Object.entries(counted).map(
    ([name, count]) => [name, Math.max(count, known.counted[name] ?? 0)] as const,
  );
  return replace(facts, { ...known, counted: { ...known.counted, ...Object.fromEntries(larger) } });
}

/**
 * Puts what the receipt says in place of what was counted, and lets gates open (SV-3). Receipts
 * may come late, out of order and again: of one call the weightiest stage stands, and of two
 * receipts of the same stage the first. A cap whose update cannot be computed keeps what was
 * counted, a gate stays as it is; `problems` names them.
 */
export function applyReceipt(policy: Policy, facts: Facts, receipt: FactReceipt): Facts {
  const known = facts.calls.find((call) => call.callId === receipt.callId);
  const tool = known?.tool ?? receipt.tool;
  if (updatesFor(policy, tool).length === 0) return facts;
  if (known !== undefined && !outweighs(receipt.status, known.state)) return facts;
  const counted = known?.counted ?? {};
  const effect: CallEffect = {
    callId: receipt.callId,
    tool,
    state: receipt.status,
    counted,
    ...settle(policy, tool, counted, receipt),
  };
  if (known !== undefined) return replace(facts, effect);
  return { ...facts, calls: [...facts.calls, effect] };
}

/** Takes back what a call counted for: its writ was burnt unexecuted (TG-8). A receipt outweighs it. */
export function applyVoid(facts: Facts, callId: string): Facts {
  const known = facts.calls.find((call) => call.callId === callId);
  if (known === undefined || !outweighs('void', known.state)) return facts;
  return replace(facts, { ...known, state: 'void' });
}

function outweighs(next: CallState, present: CallState): boolean {
  return CALL_STATES.indexOf(next) > CALL_STATES.indexOf(present);
}

function replace(facts: Facts, effect: CallEffect): Facts {
  const calls = facts.calls.map((call) => (call.callId === effect.callId ? effect : call));
  return { ...facts, calls };
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
