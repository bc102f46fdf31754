import type { DescMethod } from '@bufbuild/protobuf';
import {
  type AgentRef,
  PermissionDeniedError,
  type Priority,
  UnauthenticatedError,
} from '@writ/kernel';

/**
 * What a person may do on the public services: `caller` runs, `approver` approvals, `admin` all of the
 * own tenant; `operator` halts across tenants.
 */
export type Role = 'caller' | 'approver' | 'admin' | 'operator';

/** The agent that a verified agent token names (SUP-9). */
export interface AgentIdentity {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: AgentRef;
  /** Absent at the root. */
  readonly parent?: AgentRef;
  readonly depth: number;
  readonly priority: Priority;
  /** Model aliases that it may use. */
  readonly models: readonly string[];
  /** Tools that it may see. */
  readonly tools: readonly string[];
}

/** The service that a verified service token names. */
export interface ServiceIdentity {
  readonly name: string;
  readonly replica: string;
  /** Tenants that it serves; empty means all (SYS-6). */
  readonly tenants: readonly string[];
}

/** The right to act now that a verified slot grant gives (SB-4). */
export interface SlotGrant {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
  readonly priority: Priority;
  /** Lease epoch that it was granted to; zero before a worker has one. */
  readonly epoch: bigint;
  readonly expireTime: Date;
}

/** The person behind an API key or OIDC token. */
export interface Person {
  readonly subject: string;
  readonly tenant: string;
  readonly roles: readonly Role[];
}

/** Who calls, as proven by the call's credentials. A {@link Gate} builds it, handlers read it. */
export interface Caller {
  readonly service?: ServiceIdentity;
  readonly agent?: AgentIdentity;
  readonly slotGrant?: SlotGrant;
  /** Epoch of the worker's lease, from the metadata `writ-epoch` (RT-2). */
  readonly epoch?: bigint;
  readonly person?: Person;
}

/** What a {@link Gate} sees of a call: never its content. */
export interface GateCall {
  readonly method: DescMethod;
  /** The URIs by which the client's certificate names it; undefined when it showed none. */
  readonly peerUris?: readonly string[] | undefined;
  /** The value of one request header (metadata key), whatever its case; undefined when absent. */
  header(name: string): string | undefined;
}

/**
 * Authenticates and authorises a call before anything looks at its content (SYS-6).
 * Resolves to who calls; throws UnauthenticatedError or PermissionDeniedError.
 */
export type Gate = (call: GateCall) => Promise<Caller>;

/** Metadata keys that carry credentials and the lease; one spelling for both sides. */
export const METADATA = {
  authorization: 'authorization',
  agentToken: 'writ-agent-token',
  slotGrant: 'writ-slot-grant',
  epoch: 'writ-epoch',
  traceparent: 'traceparent',
} as const;

interface Called {
  readonly caller: Caller;
}

/**
 * The agent that calls.
 * @throws UnauthenticatedError AGENT_TOKEN_REQUIRED when the call carries no agent token
 */
export function requireAgent(call: Called): AgentIdentity {
  if (call.caller.agent !== undefined) return call.caller.agent;
  throw new UnauthenticatedError(
    'AGENT_TOKEN_REQUIRED',
    `${METADATA.agentToken} is missing: this call is made for an agent and needs its token.`,
    { metadata_key: METADATA.agentToken },
  );
}

/**
 * The person who calls.
 * @throws UnauthenticatedError USER_CREDENTIAL_REQUIRED when the call carries no API key or user token
 */
export function requirePerson(call: Called): Person {
  if (call.caller.person !== undefined) return call.caller.person;
  throw new UnauthenticatedError(
    'USER_CREDENTIAL_REQUIRED',
    `${METADATA.authorization} is missing: this call needs an API key or a user's token.`,
    { metadata_key: METADATA.authorization },
  );
}

/**
 * The service that calls.
 * @throws PermissionDeniedError SERVICE_REQUIRED when somebody else does
 */
export function requireService(call: Called): ServiceIdentity {
  if (call.caller.service !== undefined) return call.caller.service;
  throw new PermissionDeniedError('SERVICE_REQUIRED', 'Only services of Writ may make this call.');
}
