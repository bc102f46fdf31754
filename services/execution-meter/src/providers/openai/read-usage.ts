import type { TokenUsage } from '../../domain/ledger/spending.ts';

/** No call has more tokens than this; a provider that says so is wrong. */
const MOST = 1_000_000_000;

/** The usage that a provider reports; undefined when it is missing, negative or absurd (EM-8). */
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
  return valid && value >= 0 && value <= MOST ? BigInt(value) : undefined;
}

/** The fields of whatever came; none of what is no object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
