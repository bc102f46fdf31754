import type { DescMethod } from '@bufbuild/protobuf';
import {
  type AgentRef,
  PermissionDeniedError,
  type Priority,
  UnauthenticatedError,
} from '@writ/kernel';

/**
 * The permissions of a person on the public services: `caller` starts, reads and controls runs, `approver` decides
 * approvals, `auditor` reads, `admin` may do everything, each in its tenant; `operator` orders halts, changes caps and
 * priorities, and reads usage in every tenant. The role `agent` has no permissions on the public services: a key with
 * this role belongs to an external agent and is valid only on agent-proxy (AP-1).
 */
export type Role = 'caller' | 'approver' | 'auditor' | 'admin' | 'operator' | 'agent';

/** The agent named by a verified agent token (SUP-9). */
export interface AgentIdentity {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: AgentRef;
  /** Absent for the root agent. */
  readonly parent?: AgentRef;
  readonly depth: number;
  readonly priority: Priority;
  /** Model aliases that the agent may use. */
  readonly models: readonly string[];
  /** Tools that the agent may see. */
  readonly tools: readonly string[];
}

/** The service named by a verified service token. */
export interface ServiceIdentity {
  readonly name: string;
  readonly replica: string;
  /** Tenants that the service may act for; empty means all (SYS-6). */
  readonly tenants: readonly string[];
  /** Tenants that the service may not act for: the tenants of worker pools (SYS-6). Default: none. */
  readonly exceptTenants?: readonly string[];
}

/** The content of a verified slot grant: the permission of an agent to act (SB-4). */
export interface SlotGrant {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
  readonly priority: Priority;
  /** Lease epoch of the grant; zero before a worker holds the lease. */
  readonly epoch: bigint;
  readonly expireTime: Date;
}

/** The person behind an API key or OIDC token. */
export interface Person {
  readonly subject: string;
  readonly tenant: string;
  readonly roles: readonly Role[];
  /** Name of the external agent to which a key with the role `agent` is bound; undefined for other roles. */
  readonly agent?: string;
}

/** The authenticated caller. A {@link Gate} builds it, handlers read it. */
export interface Caller {
  readonly service?: ServiceIdentity;
  readonly agent?: AgentIdentity;
  readonly slotGrant?: SlotGrant;
  /** Epoch of the worker's lease, from the metadata `writ-epoch` (RT-2). */
  readonly epoch?: bigint;
  readonly person?: Person;
  /** Set for an RPC that needs no credentials, such as GetKeys: nothing is known about its caller. */
  readonly isAnonymous?: true;
}

/** The part of a call that a {@link Gate} sees: never its content. */
export interface GateCall {
  readonly method: DescMethod;
  /** The URI names of the client certificate; undefined without one. */
  readonly peerUris?: readonly string[] | undefined;
  /** The value of a request header (metadata key, case-insensitive); undefined when absent. */
  header(name: string): string | undefined;
}

/**
 * Authenticates and authorizes a call before its content is read (SYS-6). Resolves to the caller; throws a named error,
 * such as UnauthenticatedError TOKEN_INVALID, PermissionDeniedError CALLER_NOT_ALLOWED, InvalidRequestError
 * EPOCH_MISSING, PreconditionError SLOT_GRANT_REQUIRED, OverloadedError RATE_LIMITED or UnavailableError
 * KEYS_UNAVAILABLE.
 */
export type Gate = (call: GateCall) => Promise<Caller>;

/** The metadata keys of credentials, lease epoch and trace. */
export const METADATA = {
  authorization: 'authorization',
  agentToken: 'writ-agent-token',
  slotGrant: 'writ-slot-grant',
  epoch: 'writ-epoch',
  traceparent: 'traceparent',
  /** The time of the sender, in calls between services and in their responses: milliseconds since 1970 (BD-3). */
  time: 'writ-time',
} as const;

interface CallWithCaller {
  readonly caller: Caller;
}

/**
 * Returns the calling agent.
 * @throws UnauthenticatedError AGENT_TOKEN_REQUIRED when the call carries no agent token
 */
export function requireAgent(call: CallWithCaller): AgentIdentity {
  if (call.caller.agent !== undefined) return call.caller.agent;
  throw new UnauthenticatedError(
    'AGENT_TOKEN_REQUIRED',
    `Metadata key ${METADATA.agentToken} is required: this call needs an agent token.`,
    { metadata_key: METADATA.agentToken },
  );
}

/**
 * Returns the calling person.
 * @throws UnauthenticatedError USER_CREDENTIAL_REQUIRED when the call carries no API key or user token
 */
export function requirePerson(call: CallWithCaller): Person {
  if (call.caller.person !== undefined) return call.caller.person;
  throw new UnauthenticatedError(
    'USER_CREDENTIAL_REQUIRED',
    `Metadata key ${METADATA.authorization} is required: this call needs an API key or a user token.`,
    { metadata_key: METADATA.authorization },
  );
}

/**
 * Returns the calling service.
 * @throws PermissionDeniedError SERVICE_REQUIRED when the caller is not a service
 */
export function requireService(call: CallWithCaller): ServiceIdentity {
  if (call.caller.service !== undefined) return call.caller.service;
  throw new PermissionDeniedError('SERVICE_REQUIRED', 'Only Writ services may make this call.');
}
