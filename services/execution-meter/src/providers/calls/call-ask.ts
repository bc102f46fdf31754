import type { Priority } from '@writ/kernel';
import type { ChatRequest } from '../../domain/chat/chat.ts';
import type { AgentKey } from '../../domain/freeze.ts';

/** A model call as an agent asks for it. */
export interface CallAsk extends AgentKey {
  readonly callId: string;
  /** Digest of everything that makes it this request. */
  readonly requestDigest: string;
  /** Epoch of the worker's lease (RT-2). */
  readonly epoch: bigint;
  readonly priority: Priority;
  /** Catalog aliases that the agent's token names; its tab has to name them, too. */
  readonly tokenModels: readonly string[];
  /** Catalog alias. */
  readonly model: string;
  readonly chat: ChatRequest;
  /** Undefined takes the catalog's. */
  readonly maxOutputTokens: bigint | undefined;
  /** Whether the output cap shrinks to what fits the budget, or the call is refused (EM-3). */
  readonly fit: 'refuse' | 'shrink';
  /** Longest wait for one attempt; undefined takes the catalog's. */
  readonly timeoutMs: number | undefined;
  readonly step: number;
  /** An empty answer is a failure. */
  readonly requireContent: boolean;
  readonly traceparent: string;
}

/** The one name of a call in this process. */
export function callKey({
  tenant,
  runId,
  agentInstance,
  callId,
}: AgentKey & { readonly callId: string }): string {
  return `${tenant}/${runId}/${agentInstance}/${callId}`;
}
