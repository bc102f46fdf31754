import { InvalidRequestError } from '@writ/kernel';

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNIT_MS;

const DURATION = /^(\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

/**
 * Parses a duration such as `250ms`, `30s`, `1.5h` or `1m30s` into milliseconds, rounded to the
 * nearest. A number without a unit is rejected as ambiguous.
 * @throws InvalidRequestError INVALID_DURATION naming `field`
 */
export function parseDuration(text: string, field = 'duration'): number {
  if (!DURATION.test(text)) {
    throw new InvalidRequestError(
      'INVALID_DURATION',
      `${field} must be a duration with a unit (ms, s, m, h or d), such as 30s or 1m30s.`,
      { field },
    );
  }
  let milliseconds = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    milliseconds += Number(amount) * UNIT_MS[unit as Unit];
  }
  return Math.round(milliseconds);
}
