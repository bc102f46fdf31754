import type { IncomingHttpHeaders } from 'node:http';
import type { Verifier } from '@writ/identity';
import {
  type AgentKey,
  type JsonValue,
  PreconditionError,
  sha256Hex,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { hintOf } from '../../domain/conversation.ts';
import { subAgentOf, taskOf } from '../../domain/sub-agent.ts';
import type { RunQuery } from '../../peers/peers.ts';
import { type AgentRow, findAgent, keyOf } from '../../store/agents.ts';
import { noteUse } from '../agent/note-use.ts';
import type { RequestInProgress } from '../agent/requests-in-progress.ts';

/** Prefix of run tokens, by which secret scanners find leaked tokens. */
const TOKEN_PREFIX = 'writ_run_';
/** A run token or an agent key. */
const CREDENTIAL = /^writ_[\w.-]{1,8192}$/;

/** The parts of a request that determine the agent it acts for. */
export interface AgentRequest {
  readonly headers: IncomingHttpHeaders;
  /** Reads the body: some clients name their conversation in it. Omitted for requests without one. */
  readonly body?: () => Promise<Uint8Array<ArrayBuffer>>;
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
 * Returns the agent that a request acts for, from its credentials, and records that the agent is in use (AP-1). A run
 * token names the agent. For an agent key, the agent is the root of the run whose id the request names; without an id,
 * it is the root of the open run of the conversation or of the key, and a run is opened if none is found. Headers may
 * name a sub-agent. Every endpoint calls this function for every request before it acts for the agent.
 * @throws UnauthenticatedError TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED; UnavailableError AGENT_NOT_DELIVERED,
 *   KEYS_UNAVAILABLE; PreconditionError RUN_ENDED; what `body`, KeyRunCache.of and SubAgents.of throw
 */
export async function authorize(context: ProxyContext, request: AgentRequest): Promise<Authorized> {
  const credential = credentialOf(request.headers);
  const root = credential.startsWith(TOKEN_PREFIX)
    ? await loadLiving(context, await agentOfToken(context.verifier, credential))
    : await agentOfKey(context, await queryOf(request, credential));
  const agent = await subAgentFor(context, root, request);
  await noteUse(context, agent);
  return { key: keyOf(agent), sessionId: agent.session_id, agent };
}

/**
 * Begins a request of an agent.
 * @throws OverloadedError TOO_MANY_REQUESTS
 */
export function beginRequest(
  { open }: Pick<ProxyContext, 'open'>,
  { agent }: Authorized,
): RequestInProgress {
  return open.begin(agent);
}

/**
 * Ends a request. If every other request of the agent waits for a person, or there is none, the slot of the agent is
 * reported as waiting after a delay.
 */
export async function endRequest(
  context: ProxyContext,
  { key, agent }: Authorized,
  request: RequestInProgress,
): Promise<void> {
  request.end();
  context.slots.released(key);
  await noteUse(context, agent);
}

/**
 * Returns the bearer token, or the `x-api-key` that clients of Anthropic send.
 * @throws UnauthenticatedError TOKEN_MISSING
 */
function credentialOf({ authorization, 'x-api-key': key }: IncomingHttpHeaders): string {
  const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  const credential = bearer ?? (typeof key === 'string' ? key : '');
  if (CREDENTIAL.test(credential)) return credential;
  throw new UnauthenticatedError(
    'TOKEN_MISSING',
    'The request has neither a run token nor an agent key; send one as the API key. Both begin with writ_.',
    {},
  );
}

async function agentOfToken(verifier: Verifier, credential: string): Promise<AgentKey> {
  const { claims } = await verifier.verify('run_token', credential.slice(TOKEN_PREFIX.length), {
    issuer: 'supervisor',
    audience: 'agent-proxy',
  });
  const { tenant, runId, agent } = claims;
  return { tenant, runId, instance: agent?.instance ?? '' };
}

/**
 * Returns the sub-agent that the client names, or the main agent if the client names no sub-agent (AP-6). A request of
 * a sub-agent is also recorded as use of the main agent.
 */
async function subAgentFor(
  context: ProxyContext,
  root: AgentRow,
  { headers, body }: AgentRequest,
): Promise<AgentRow> {
  const named = subAgentOf(headers);
  if (named === undefined) return root;
  await noteUse(context, root);
  const task = async () => (body === undefined ? '' : taskOf(jsonOf(await body())));
  return await context.subAgents.of(root, named, task);
}

/**
 * Returns the agent of the run of an agent key. If the cached run has ended, requests the run from the supervisor
 * again.
 */
async function agentOfKey(context: ProxyContext, query: RunQuery): Promise<AgentRow> {
  const run = await context.runs.of(query);
  const agent = await findAgent(context.store.db, run.key);
  if (agent === undefined || agent.ended_at === null) return await loadLiving(context, run.key);
  context.runs.forget(query, run);
  return await loadLiving(context, (await context.runs.of(query)).key);
}

async function queryOf({ headers, body }: AgentRequest, apiKey: string): Promise<RunQuery> {
  const hint = await hintOf(headers, body && (async () => jsonOf(await body())));
  // A product name such as OpenAI/JS, without the comment that follows it.
  const client = (headers['user-agent'] ?? '').split('(', 1)[0]?.replaceAll(/[^\w ./-]/g, '') ?? '';
  return {
    apiKey,
    runId: hint?.kind === 'run' ? hint.name : '',
    conversation: hint?.kind === 'conversation' ? sha256Hex(hint.name) : '',
    client: client.slice(0, 64).trim(),
  };
}

/** Returns the body as JSON; null when the body is not JSON, in which case the endpoint rejects the request later. */
function jsonOf(body: Uint8Array<ArrayBuffer>): JsonValue {
  try {
    return JSON.parse(Buffer.from(body).toString()) as JsonValue;
  } catch {
    return null;
  }
}

/**
 * Returns an agent that has not ended.
 * @throws UnavailableError AGENT_NOT_DELIVERED; PreconditionError RUN_ENDED
 */
async function loadLiving({ store, config }: ProxyContext, key: AgentKey): Promise<AgentRow> {
  const { tenants } = config;
  const agent = await findAgent(store.db, key);
  if (agent === undefined || (tenants.length > 0 && !tenants.includes(key.tenant))) {
    throw new UnavailableError(
      'AGENT_NOT_DELIVERED',
      `Agent ${key.instance} of run ${key.runId} was not delivered to this agent-proxy; retry.`,
      { run_id: key.runId, retry_after_ms: '1000' },
    );
  }
  if (agent.ended_at === null) return agent;
  throw new PreconditionError(
    'RUN_ENDED',
    `Run ${key.runId} has ended: ${agent.stop_reason ?? 'ended'}. Start a new run.`,
    { run_id: key.runId, stop_reason: agent.stop_reason ?? '' },
  );
}
