import { InvalidRequestError } from '@writ/kernel';
import type { Policy, ProposedAction } from '../types.ts';
import {
  CALL_STATES,
  type CallEffect,
  type CallState,
  type FactReceipt,
  type Facts,
} from './fact-types.ts';
import { countsOf, updatesFor } from './fact-updates.ts';
import { settle } from './receipt-effect.ts';

/**
 * Adds an approved action to every cap that it affects, before its receipt (SV-3). A repeat for the same call does not
 * add the action again; for each cap, the larger count applies.
 * @throws InvalidRequestError POLICY_EVALUATION_FAILED when a count cannot be computed; the review blocks such an
 *   action before it is approved
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
    const message = `The count of the action for fact ${failed} cannot be computed.`;
    throw new InvalidRequestError('POLICY_EVALUATION_FAILED', message, { fact: failed });
  }
  const known = facts.calls.find((call) => call.callId === callId);
  if (known === undefined) {
    const added = { callId, tool, state: 'pending', counted, settled: {}, problems: [] } as const;
    return { ...facts, calls: [...facts.calls, added] };
  }
  if (known.state !== 'pending') return facts;
  const larger = Object.entries(counted).map(
    ([name, count]) => [name, Math.max(count, known.counted[name] ?? 0)] as const,
  );
  return replace(facts, { ...known, counted: { ...known.counted, ...Object.fromEntries(larger) } });
}

/**
 * Replaces the count of a call with the values of its receipt, and updates gates (SV-3). A receipt with an unknown
 * outcome keeps the count and changes no gate. Receipts can be late, out of order and repeated: the state with the
 * highest precedence applies, and of two receipts with the same state the first. If an update cannot be computed, a cap
 * keeps its count and a gate keeps its value, and `problems` names the fact.
 */
export function applyReceipt(policy: Policy, facts: Facts, receipt: FactReceipt): Facts {
  const known = facts.calls.find((call) => call.callId === receipt.callId);
  const tool = known?.tool ?? receipt.tool;
  if (updatesFor(policy, tool).length === 0) return facts;
  if (known !== undefined && !supersedes(receipt.status, known.state)) return facts;
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

/**
 * Removes the count of a call whose writ was voided without execution (TG-8). A receipt takes
 * precedence.
 */
export function applyVoid(facts: Facts, callId: string): Facts {
  const known = facts.calls.find((call) => call.callId === callId);
  if (known === undefined || !supersedes('void', known.state)) return facts;
  return replace(facts, { ...known, state: 'void' });
}

function supersedes(next: CallState, present: CallState): boolean {
  return CALL_STATES.indexOf(next) > CALL_STATES.indexOf(present);
}

function replace(facts: Facts, effect: CallEffect): Facts {
  const calls = facts.calls.map((call) => (call.callId === effect.callId ? effect : call));
  return { ...facts, calls };
}
