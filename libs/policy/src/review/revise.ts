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

/** Converts a CEL result to an argument; undefined when it is not a valid JSON value. */
function asJson(value: unknown): JsonValue | undefined {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'bigint') return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
