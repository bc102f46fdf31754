import type { IncomingHttpHeaders } from 'node:http';
import type { Verifier } from '@writ/identity';
import {
  type AgentKey,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { type AgentRow, findAgent, keyOf, saveAgent } from '../../store/agents.ts';
import type { OpenRequest } from '../agent/open-requests.ts';

/** Secret scanners find leaked tokens by it. */
const TOKEN_PREFIX = 'writ_run_';

/** What of a request determines the agent that it acts for. */
export interface AgentRequest {
  readonly headers: IncomingHttpHeaders;
  /** Reads the body: some clients name their conversation in it. Omitted where it is no JSON object of a model API. */
  readonly body?: () => Promise<Uint8Array>;
}

/** The agent that a request acts for. */
export interface Authorized {
  /** Tenant, run and instance. */
  readonly key: AgentKey;
  readonly sessionId: string;
  /** Its row, with name, models and times. */
  readonly agent: AgentRow;
}

/**
 * Returns the agent that a request acts for, from its credentials, and notes that it was used (AP-1). Every endpoint
 * calls it first, with every request.
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED; UnavailableError AGENT_NOT_DELIVERED;
 *   PreconditionError RUN_ENDED
 */
export async function authorize(
  context: ProxyContext,
  { headers }: AgentRequest,
): Promise<Authorized> {
  const { store, config } = context;
  const key = await agentOf(context.verifier, credentialOf(headers));
  const { tenants } = config;
  const agent = await findAgent(store.db, key);
  if (agent === undefined || (tenants.length > 0 && !tenants.includes(key.tenant))) {
    throw new UnavailableError(
      'AGENT_NOT_DELIVERED',
      `Agent ${key.instance} of run ${key.runId} has not arrived yet; retry.`,
      { run_id: key.runId, retry_after_ms: '1000' },
    );
  }
  if (agent.ended_at !== null) {
    throw new PreconditionError(
      'RUN_ENDED',
      `Run ${key.runId} has ended: ${agent.stop_reason ?? 'ended'}. Start a new run.`,
      { run_id: key.runId, stop_reason: agent.stop_reason ?? '' },
    );
  }
  await noteUse(context, agent);
  return { key, sessionId: agent.session_id, agent };
}

/**
 * Begins a request of an agent.
 * @throws OverloadedError TOO_MANY_REQUESTS
 */
export function beginRequest(
  { open }: Pick<ProxyContext, 'open'>,
  { key }: Authorized,
): OpenRequest {
  return open.begin(key);
}

/** Ends a request: the slot of an agent without another one is soon reported as waiting. */
export async function endRequest(
  context: ProxyContext,
  { key, agent }: Authorized,
  request: OpenRequest,
): Promise<void> {
  request.end();
  context.slots.released(key);
  await noteUse(context, agent);
}

/** A bearer token, or the key of a client of Anthropic. */
function credentialOf({ authorization, 'x-api-key': key }: IncomingHttpHeaders) {
  const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  return bearer ?? (typeof key === 'string' ? key : undefined);
}

async function agentOf(verifier: Verifier, credential: string | undefined): Promise<AgentKey> {
  if (credential?.startsWith(TOKEN_PREFIX) !== true) {
    throw new UnauthenticatedError(
      'TOKEN_MISSING',
      `The request has no run token; send one of IssueRunToken, which begins with ${TOKEN_PREFIX}, as the API key.`,
      {},
    );
  }
  const { claims } = await verifier.verify('run_token', credential.slice(TOKEN_PREFIX.length), {
    issuer: 'supervisor',
    audience: 'agent-proxy',
  });
  const { tenant, runId, agent } = claims;
  return { tenant, runId, instance: agent?.instance ?? '' };
}

/** Rarely, so that a request does not cost a commit more. */
async function noteUse({ store, clock }: ProxyContext, agent: AgentRow): Promise<void> {
  const now = clock.now();
  if (now.getTime() - agent.used_at.getTime() < agent.idle_ms / 4) return;
  await store.transaction((trx) => saveAgent(trx, keyOf(agent), { used_at: now }));
}
