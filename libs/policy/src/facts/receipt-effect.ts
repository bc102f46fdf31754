import { clamp } from '../cel/cents.ts';
import type { Fact, FactUpdate, FactValue, Policy } from '../types.ts';
import type { FactReceipt } from './fact-types.ts';
import { updatesFor } from './fact-updates.ts';
import { nested } from './result-fields.ts';

/** Effect of a receipt by fact. */
export interface Settlement {
  readonly settled: Readonly<Record<string, FactValue>>;
  readonly problems: readonly string[];
}

/**
 * Computes the effect of a receipt (SV-3). When the update of a fact cannot be computed, a cap keeps its
 * count and a gate its value (SYS-4).
 */
export function settle(
  policy: Policy,
  tool: string,
  counted: Readonly<Record<string, number>>,
  { status, fields = {} }: FactReceipt,
): Settlement {
  const settled: Record<string, FactValue> = {};
  const problems: string[] = [];
  if (status === 'refused' || status === 'unknown') return { settled, problems };
  const shared = { limits: policy.limits, result: nested(fields) };
  for (const { fact, update } of updatesFor(policy, tool)) {
    const count = counted[fact.name] ?? 0;
    if (status === 'failed') {
      if (fact.kind === 'cap' && update.failureCounts) settled[fact.name] = count;
      continue;
    }
    // After a failed update of a fact, later updates of the fact are skipped, because one of them could open a gate
    // that the failed update would have kept closed.
    if (Object.hasOwn(settled, fact.name) || problems.includes(fact.name)) continue;
    try {
      const value = evaluateUpdate(fact, update, { ...shared, counted: BigInt(count) }, count);
      if (value !== undefined) settled[fact.name] = value;
    } catch {
      // The receipt cannot be rejected any more; the caller reports the fact.
      if (fact.kind === 'cap') settled[fact.name] = count;
      problems.push(fact.name);
    }
  }
  return { settled, problems };
}

/** Returns the value of a fact; undefined when `when` is false: a gate keeps its value, a cap counts nothing. */
function evaluateUpdate(
  fact: Fact,
  update: FactUpdate,
  context: Readonly<Record<string, unknown>>,
  counted: number,
): FactValue | undefined {
  const holds = update.when === undefined ? true : update.when.evaluate(context);
  if (typeof holds !== 'boolean') throw new TypeError('when must give true or false');
  if (!holds) return undefined;
  if (update.value === undefined) return counted;
  const value = update.value.evaluate(context);
  if (fact.type === 'int' || fact.type === 'cents') return wholeNumber(value, fact.kind);
  if (fact.type === 'bool' && typeof value === 'boolean') return value;
  if (fact.type === 'string' && typeof value === 'string') return value;
  throw new TypeError(`the fact must be of type ${fact.type}`);
}

function wholeNumber(value: unknown, kind: Fact['kind']): number {
  if (typeof value !== 'bigint') throw new TypeError('the fact must be a whole number');
  // A negative result would raise the remaining cap, which no tool is permitted to do.
  if (kind === 'cap' && value < 0n) throw new RangeError('a cap cannot count down');
  return Number(clamp(value));
}
