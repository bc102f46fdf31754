import type { TokenUsage } from '../ledger/spending.ts';

/** What a provider can have used for an attempt, at most. */
export interface UsageLimits {
  /** The most prompt tokens for every tokenizer, image and document. */
  readonly promptTokens: bigint;
  /** Requested output tokens. */
  readonly outputTokens: bigint;
  /** Whether the answer has any content. */
  readonly hasContent: boolean;
}

/**
 * Finds a contradiction between the usage that a provider reports and the request or the answer (EM-8). Such usage is
 * not settled, but estimated from the content.
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
