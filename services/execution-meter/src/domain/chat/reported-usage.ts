import type { TokenUsage } from '../ledger/spending.ts';

/** Upper bounds of the usage that a provider can report for an attempt. */
export interface UsageLimits {
  /** Maximum number of prompt tokens, for any tokenizer and any size of images and documents. */
  readonly promptTokens: bigint;
  /** Requested output tokens. */
  readonly outputTokens: bigint;
  /** Whether the answer has any content. */
  readonly hasContent: boolean;
}

/**
 * Finds a contradiction between the usage that a provider reports and the request or the answer (EM-8). Contradictory
 * usage is not settled; the settlement then uses an estimate from the content.
 * @returns one sentence; undefined for usage that is possible
 */
export function contradictionIn(usage: TokenUsage, limits: UsageLimits): string | undefined {
  const { input, output } = usage;
  const { promptTokens, outputTokens, hasContent } = limits;
  if (input > promptTokens) {
    return `The provider reported ${input} input tokens for a prompt of at most ${promptTokens}; usage is estimated.`;
  }
  if (output > outputTokens) {
    return `The provider reported ${output} output tokens, but ${outputTokens} were requested; usage is estimated.`;
  }
  if (output === 0n && hasContent) {
    return 'The provider reported no output tokens for an answer with content; usage is estimated.';
  }
  return undefined;
}
