import type { JsonObject, JsonValue } from '@writ/kernel';
import { isBlank } from '../cel/cel.ts';
import type { Adjustment } from '../types.ts';

/**
 * Applies the adjustments of a revise rule to the arguments (SV-3): each named argument is set, filled when it is
 * missing or blank, or clamped to limits. Returns undefined when an adjustment cannot be computed, for example a limit
 * for a string.
 */
export function adjust(
  adjustments: readonly Adjustment[],
  args: JsonObject,
  context: Readonly<Record<string, unknown>>,
): JsonObject | undefined {
  const changed: Record<string, JsonValue> = { ...args };
  try {
    for (const adjustment of adjustments) {
      const value = adjusted(adjustment, args[adjustment.argument], context);
      if (value === undefined) return undefined;
      changed[adjustment.argument] = value;
    }
    return changed;
  } catch {
    // An argument is missing or has an unexpected type; the caller blocks the action.
    return undefined;
  }
}

function adjusted(
  adjustment: Adjustment,
  present: JsonValue | undefined,
  context: Readonly<Record<string, unknown>>,
): JsonValue | undefined {
  switch (adjustment.how) {
    case 'value':
      return adjustment.literal;
    case 'fill':
      return present === undefined || isBlank(present) ? adjustment.literal : present;
    case 'cel':
      return asJson(adjustment.expression.evaluate(context));
    case 'clamp':
      return clamped(adjustment, present, context);
  }
}

function clamped(
  { least, most }: Extract<Adjustment, { how: 'clamp' }>,
  present: JsonValue | undefined,
  context: Readonly<Record<string, unknown>>,
): number | undefined {
  if (typeof present !== 'number') return undefined;
  let value = present;
  for (const [bound, pick] of [
    [least, Math.max],
    [most, Math.min],
  ] as const) {
    const limit = bound === undefined ? value : asJson(bound.evaluate(context));
    if (typeof limit !== 'number') return undefined;
    value = pick(value, limit);
  }
  return value;
}

/** Converts a CEL result to an argument; undefined when it, or a part of it, is not a valid JSON value. */
function asJson(value: unknown): JsonValue | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : undefined;
  }
  if (Array.isArray(value)) {
    const items = value.map(asJson);
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  if (!isMap(value)) return undefined;
  const members = Object.entries(value).map(([name, member]) => [name, asJson(member)] as const);
  if (members.some(([, member]) => member === undefined)) return undefined;
  return Object.fromEntries(members) as JsonObject;
}

/** Whether a CEL result is a map; timestamps, durations and bytes are objects of other classes. */
function isMap(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
