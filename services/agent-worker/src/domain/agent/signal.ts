import type { AgentKey } from '@writ/kernel';
import type { Decision } from '../calls/decision.ts';
import type { AgentCredentials } from './credentials.ts';

/** A signal to an agent from outside the worker. */
export interface IncomingSignal {
  readonly agent: AgentKey;
  readonly requestId: string;
  readonly name: string;
  /** JSON object; may be empty. */
  readonly payloadJson: string;
  /** Subject of the client that sent the signal; empty when no client sent it. */
  readonly sender: string;
  /** Present for approvals. */
  readonly decision: Decision | undefined;
  /** New tokens of the agent. */
  readonly credentials: AgentCredentials | undefined;
}
