import type { TokenUsage } from '../../domain/ledger/spending.ts';

/** Upper bound of plausible token counts. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Reads the usage reported by a provider; undefined when it is missing, negative or implausible
 * (EM-8).
 */
export function readUsage(usage: unknown): TokenUsage | undefined {
  const fields = fieldsOf(usage);
  const input = count(fields.prompt_tokens);
  const output = count(fields.completion_tokens);
  if (input === undefined || output === undefined) return undefined;
  const cached = count(fieldsOf(fields.prompt_tokens_details).cached_tokens) ?? 0n;
  const reasoning = count(fieldsOf(fields.completion_tokens_details).reasoning_tokens) ?? 0n;
  return {
    input,
    cachedInput: cached > input ? input : cached,
    output,
    reasoning: reasoning > output ? output : reasoning,
  };
}

function count(value: unknown): bigint | undefined {
  const valid = typeof value === 'number' && Number.isSafeInteger(value);
  return valid && value >= 0 && value <= MAX_TOKENS ? BigInt(value) : undefined;
}

/** Returns the fields of an object, or no fields for any other value. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
