import type { AgentKey, Supervision } from '@writ/kernel';
import type { AgentCredentials } from './credentials.ts';
import type { AgentManifest } from './manifest.ts';
import type { Message } from './message.ts';
import type { SlotGrant } from './slot.ts';

/** A new agent, as the supervisor delivers it. */
export interface Delivery {
  readonly agent: AgentKey;
  readonly name: string;
  readonly requestId: string;
  /** Digest of the delivery without its tokens, because the tokens are new in each attempt. */
  readonly digest: string;
  readonly manifest: AgentManifest;
  readonly supervision: Supervision;
  readonly credentials: AgentCredentials;
  /** The first slot grant; undefined when the agent has no slot yet. */
  readonly slotGrant: SlotGrant | undefined;
  readonly message: Message;
  readonly deadlineAt: Date | null;
  readonly traceparent: string;
}
