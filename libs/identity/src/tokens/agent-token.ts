import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import { PermissionDeniedError } from '@writ/kernel';
import type { AgentIdentity, Caller } from '@writ/rpc';
import type { Signer } from '../keys/signer.ts';
import type { ServiceName } from '../services/names.ts';
import { weightOf } from './priority-weight.ts';
import { tokenInvalid } from './token-error.ts';
import type { Claims, ClaimsInit } from './token-kinds.ts';
import type { Verifier } from './verifier.ts';

/** Lifetime of agent tokens, ms: 15 minutes. */
export const AGENT_TOKEN_TTL_MS = 15 * 60 * 1000;

/**
 * Mints an agent's four tokens, one per audience (SUP-9): supervisor, spawn-budget,
 * execution-meter, and tool-gateway for ListTools and GetReceipt only. `signer` is the supervisor's.
 * @throws InvalidRequestError INVALID_CLAIMS, TOKEN_TOO_LARGE
 */
export async function mintAgentCredentials(
  signer: Signer,
  claims: ClaimsInit<'agent'>,
  ttlMs: number = AGENT_TOKEN_TTL_MS,
): Promise<MessageInitShape<typeof AgentCredentialsSchema>> {
  const mint = (audience: ServiceName) => signer.sign('agent', { audience, claims, ttlMs });
  const [supervisor, spawnBudget, executionMeter, toolGateway] = await Promise.all([
    mint('supervisor'),
    mint('spawn-budget'),
    mint('execution-meter'),
    mint('tool-gateway'),
  ]);
  return {
    supervisorToken: supervisor.token,
    spawnBudgetToken: spawnBudget.token,
    executionMeterToken: executionMeter.token,
    toolGatewayToken: toolGateway.token,
    expireTime: timestampFromDate(supervisor.expireTime),
  };
}

/** Options of {@link readAgentToken}. */
export interface AgentTokenOptions {
  /** The service that reads the token. */
  readonly audience: ServiceName;
  /** The calling service: a worker may act only for the tenants that it serves. */
  readonly caller: Pick<Caller, 'service'>;
  /** Whether to ignore the times of the token, for a request that only exchanges it for new tokens (BD-3). */
  readonly allowAnyTime?: boolean;
}

/**
 * Verifies an agent token, for the gate and for handlers of requests that carry tokens, such as Renew.
 * @throws UnauthenticatedError TOKEN_INVALID, TOKEN_EXPIRED
 * @throws PermissionDeniedError TENANT_NOT_SERVED (SYS-6)
 * @throws UnavailableError KEYS_UNAVAILABLE
 */
export async function readAgentToken(
  verifier: Verifier,
  token: string,
  { audience, caller, allowAnyTime = false }: AgentTokenOptions,
): Promise<AgentIdentity> {
  const { claims } = await verifier.verify('agent', token, {
    issuer: 'supervisor',
    audience,
    allowExpired: allowAnyTime,
    allowEarly: allowAnyTime,
  });
  assertServesTenant(caller, claims.tenant);
  return agentIdentity(claims);
}

/**
 * Checks that the calling service serves `tenant` (SYS-6), for handlers whose request names a tenant.
 * @throws PermissionDeniedError TENANT_NOT_SERVED
 */
export function assertServesTenant({ service }: Pick<Caller, 'service'>, tenant: string): void {
  if (service === undefined)
    throw new PermissionDeniedError('TENANT_NOT_SERVED', 'Only a service may act for a tenant.', {
      tenant,
    });
  if (servesTenant({ service }, tenant)) return;
  throw new PermissionDeniedError(
    'TENANT_NOT_SERVED',
    `This ${service.name} does not serve the tenant ${tenant}.`,
    { tenant, service: service.name },
  );
}

/** Whether the caller is a service that serves `tenant` (SYS-6). */
export function servesTenant({ service }: Pick<Caller, 'service'>, tenant: string): boolean {
  if (service === undefined) return false;
  const { tenants, exceptTenants = [] } = service;
  const isListed = tenants.length === 0 || tenants.includes(tenant);
  return isListed && !exceptTenants.includes(tenant);
}

function agentIdentity(claims: Claims<'agent'>): AgentIdentity {
  const { tenant, runId, sessionId, agent, parent, depth, models, tools } = claims;
  const priority = weightOf(claims.priority);
  if (agent === undefined || priority === undefined)
    throw tokenInvalid('agent', 'claims', 'its agent or priority is missing');
  return Object.freeze({
    tenant,
    runId,
    sessionId,
    agent: { name: agent.name, instance: agent.instance },
    ...(parent === undefined ? {} : { parent: { name: parent.name, instance: parent.instance } }),
    depth,
    priority,
    models,
    tools,
  });
}
