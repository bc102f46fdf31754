import type { CallKey } from '@writ/kernel';

/** A verified writ for exactly one call. */
export interface VerifiedWrit extends CallKey {
  /** The `jti` claim. */
  readonly id: string;
  readonly agentName: string;
  readonly sessionId: string;
  readonly tool: string;
  /** Digest of the tool definition that was reviewed. */
  readonly definitionDigest: string;
  /** SHA-256 of the exact argument bytes, in hex. */
  readonly argsSha256: string;
  /** Largest number of tool calls of the run; undefined means unlimited. */
  readonly maxToolCalls: number | undefined;
  /** Tools that the agent may call. */
  readonly allowedTools: readonly string[];
  /** Dotted paths of result fields that the receipt must carry. */
  readonly resultFields: readonly string[];
  /**
   * Whether max_calls_per_agent and max_repeats apply only where tools.yaml sets them, without the limits of the source
   * and the defaults; set for external agents.
   */
  readonly noDefaultLimits: boolean;
}
