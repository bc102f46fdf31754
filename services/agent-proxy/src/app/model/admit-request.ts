import type { Verifier } from '@writ/identity';
import { PreconditionError, UnauthenticatedError, UnavailableError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { type AgentRow, findAgent, keyOf, saveAgent } from '../../store/agents.ts';
import type { OpenRequest } from '../agent/open-requests.ts';

/** Secret scanners find leaked tokens by it. */
const TOKEN_PREFIX = 'writ_run_';

/**
 * Returns the agent that a run token names, and notes that it was used (AP-1).
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED; UnavailableError AGENT_NOT_DELIVERED;
 *   PreconditionError RUN_ENDED
 */
export async function admitRequest(
  context: ProxyContext,
  credential: string | undefined,
): Promise<AgentRow> {
  const { store, config } = context;
  const key = await agentOf(context.verifier, credential);
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
  return agent;
}

/**
 * Begins a request of an agent.
 * @throws OverloadedError TOO_MANY_REQUESTS
 */
export function beginRequest({ open }: Pick<ProxyContext, 'open'>, agent: AgentRow): OpenRequest {
  return open.begin(keyOf(agent));
}

/** Ends a request: the slot of an agent without another one is soon reported as waiting. */
export async function endRequest(
  context: ProxyContext,
  agent: AgentRow,
  request: OpenRequest,
): Promise<void> {
  request.end();
  context.slots.released(keyOf(agent));
  await noteUse(context, agent);
}

async function agentOf(verifier: Verifier, credential: string | undefined) {
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
