/**
 * The usage of one agent, or of all agents of a run together, from the closed tabs of the meter. Money is nano-USD in
 * decimal text (EM-4).
 */
export interface RunUsage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly costNanoUsd: string;
  readonly turns: number;
  readonly estimatedTurns: number;
  readonly failedCalls: number;
}

/** The usage of a run without model calls. */
export const NO_USAGE: RunUsage = Object.freeze({
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  costNanoUsd: '0',
  turns: 0,
  estimatedTurns: 0,
  failedCalls: 0,
});
