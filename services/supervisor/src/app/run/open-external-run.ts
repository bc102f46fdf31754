import type { OpenExternalRunRequest } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { apiKeyId, assertServesTenant } from '@writ/identity';
import {
  canonicalDigest,
  derivedId,
  NotFoundError,
  newId,
  OverloadedError,
  PermissionDeniedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { descendants } from '../../domain/manifest/descendants.ts';
import type { RunResult } from '../../domain/result/run-result.ts';
import { planRun, type RunRequest } from '../../domain/run/plan-run.ts';
import { mayReplace } from '../../domain/run/replace-run.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { assertRunQuota } from '../../store/run/run-quota.ts';
import {
  type AgentKeyId,
  findRun,
  latestRunOf,
  loadRun,
  openRunsOf,
  type RunRow,
} from '../../store/run/runs.ts';
import type { SupervisorReader, SupervisorTransaction } from '../../store/supervisor-store.ts';
import { rootRefOf } from '../../wire/supervision.ts';
import { awaitRunChange } from '../agent/await-run.ts';
import { manifestFor, recordRun } from './start-run.ts';
import { rootKeyOf } from './start-run-order.ts';

/** Default limit of open runs of one agent key; `options.max_open_runs` of its agent overrides it. */
const MAX_OPEN_RUNS = 10;

/** The verified holder of an agent key. */
interface Holder extends AgentKeyId {
  readonly subject: string;
  readonly agent: string;
}

/**
 * Returns the run in which the holder of an agent key acts, after the agent of the run has been delivered to
 * agent-proxy (AP-1). The transaction locks the tenant, so that concurrent first requests of a conversation open one
 * run (ADR 25). When the last run of a conversation has ended, a new run replaces it, unless a halt of the tenant or of
 * the ended run is in force. If the run ended because of a cap or a cancellation, {@link mayReplace} decides. A run
 * that the request specifies by id is not replaced.
 * @throws UnauthenticatedError TOKEN_INVALID; PermissionDeniedError ROLE_REQUIRED, TENANT_NOT_SERVED; NotFoundError
 *   AGENT_NOT_FOUND, RUN_NOT_FOUND; PreconditionError RUN_NOT_EXTERNAL, HALTED, RUN_ENDED; OverloadedError
 *   OPEN_RUNS_LIMIT, RUN_QUOTA_EXCEEDED, START_QUEUE_FULL; UnavailableError AGENT_NOT_DELIVERED
 */
export async function openExternalRun(
  context: SupervisorContext,
  request: OpenExternalRunRequest,
  call: CallContext,
): Promise<RunRow> {
  const holder = holderOf(context, request.apiKey);
  assertServesTenant(call.caller, holder.tenant);
  const run =
    (await findOpen(context.store.db, holder, request)) ??
    (await open(context, holder, request, call.traceparent));
  return await awaitDelivery(context, run, call.signal);
}

/**
 * Returns the verified holder of an agent key.
 * @throws UnauthenticatedError TOKEN_INVALID; PermissionDeniedError ROLE_REQUIRED
 */
function holderOf({ apiKeys }: SupervisorContext, key: string): Holder {
  const keyId = apiKeyId(key);
  const person = apiKeys.verify(key);
  if (person === undefined || keyId === undefined) {
    throw new UnauthenticatedError('TOKEN_INVALID', 'The API key is not valid.', {
      token: 'api_key',
    });
  }
  const { tenant, subject, agent } = person;
  if (agent !== undefined) return { tenant, keyId, subject, agent };
  throw new PermissionDeniedError(
    'ROLE_REQUIRED',
    'agent-proxy requires a key of the role agent; create one with writ keys create --role agent.',
    { roles: 'agent' },
  );
}

/**
 * Returns the run of a request: the run with the id in the request, which may have ended; without an id, the open run
 * of the conversation. A request with neither an id nor a conversation belongs to the open run of the key, if the key
 * has exactly one.
 * @throws NotFoundError RUN_NOT_FOUND
 */
async function findOpen(
  db: SupervisorReader,
  holder: Holder,
  { runId, conversation }: OpenExternalRunRequest,
): Promise<RunRow | undefined> {
  if (runId !== '') return await namedRun(db, holder, runId);
  const runs = await openRunsOf(db, holder);
  const own = runs.find((run) => run.conversation === conversation);
  if (own !== undefined || conversation !== '') return own;
  return runs.length === 1 ? runs[0] : undefined;
}

async function namedRun(db: SupervisorReader, holder: Holder, runId: string): Promise<RunRow> {
  const run = await findRun(db, { tenant: holder.tenant, runId });
  if (run?.key_id === holder.keyId) return run;
  throw new NotFoundError('RUN_NOT_FOUND', `Run ${runId} is not a run of this agent key.`, {
    run_id: runId,
  });
}

/** Records a run and the order that starts it, as StartRun does. */
async function open(
  context: SupervisorContext,
  holder: Holder,
  request: OpenExternalRunRequest,
  traceparent: string,
): Promise<RunRow> {
  const { store, clock, starts, agents } = context;
  const manifest = externalManifest(agents, holder);
  const release = starts.reserve(holder.tenant, performance.now());
  const opened = store.transaction(
    async (trx) => {
      const raced = await findOpen(trx, holder, request);
      if (raced !== undefined) return raced;
      const now = clock.now();
      const latest = await assertMayOpen(context, trx, { holder, manifest, request }, now);
      const run = await recordNew(trx, { holder, manifest, request, latest }, traceparent, {
        agents,
        now,
      });
      await context.events.runStarted(trx, { run, agent: rootRefOf(run) }, now);
      return run;
    },
    // The transaction counts all open runs of the key, so it locks the tenant.
    { tenant: holder.tenant },
  );
  return await opened.finally(release);
}

interface Opening {
  readonly holder: Holder;
  readonly manifest: AgentManifest;
  readonly request: OpenExternalRunRequest;
  /** The previous run of the conversation. */
  readonly latest?: RunRow | undefined;
}

async function assertMayOpen(
  { config }: SupervisorContext,
  trx: SupervisorTransaction,
  { holder, manifest, request: { conversation } }: Opening,
  now: Date,
): Promise<RunRow | undefined> {
  const { tenant } = holder;
  await assertNotHalted(trx, { tenant });
  const latest = await latestRunOf(trx, { ...holder, conversation });
  // A halt that ended the run prevents a new run until it is lifted.
  if (latest !== undefined) {
    await assertNotHalted(trx, rootKeyOf(latest));
    assertReplaceable(latest, await stopReasonOf(trx, latest), manifest, now);
  }
  const limit = Number(manifest.options?.max_open_runs ?? MAX_OPEN_RUNS);
  const { length: used } = await openRunsOf(trx, holder);
  if (used >= limit) {
    throw new OverloadedError(
      'OPEN_RUNS_LIMIT',
      `This agent key has ${used} open runs, and options.max_open_runs of ${manifest.name} is ${limit}; close a run, or use an open conversation of this key.`,
      { setting: 'options.max_open_runs', used: String(used), limit: String(limit) },
    );
  }
  await assertRunQuota(trx, tenant, config.maxRunsPerTenant);
  return latest;
}

/** Returns the stop reason of a run that has ended or is ending; a run that is ending has no result yet. */
async function stopReasonOf(trx: SupervisorTransaction, run: RunRow): Promise<string> {
  if (run.result !== null) return (JSON.parse(run.result) as RunResult).stopReason;
  return (await loadAgent(trx, rootKeyOf(run))).ending_stop_reason ?? '';
}

/** Checks that a new run may replace the last run of a conversation. @throws PreconditionError RUN_ENDED */
function assertReplaceable(
  latest: RunRow,
  stopReason: string,
  manifest: AgentManifest,
  now: Date,
): void {
  const { run_id: runId, definition_hash: definitionHash, deadline_at: deadlineAt } = latest;
  if (mayReplace({ stopReason, definitionHash, deadlineAt }, manifest.definitionHash, now)) return;
  const until = deadlineAt === null ? '' : ` before ${deadlineAt.toISOString()}`;
  throw new PreconditionError(
    'RUN_ENDED',
    `Run ${runId} ended with ${stopReason}, so its conversation gets no new run${until}; change the definition of agent ${manifest.name}, or use another conversation.`,
    { run_id: runId, stop_reason: stopReason },
  );
}

async function recordNew(
  trx: SupervisorTransaction,
  { holder, manifest, request: { conversation, client }, latest }: Opening,
  traceparent: string,
  { agents, now }: { readonly agents: SupervisorContext['agents']; readonly now: Date },
): Promise<RunRow> {
  const { tenant, keyId, subject } = holder;
  const goal = `external: ${client || 'unnamed client'}`;
  const runId = newId('run');
  return await recordRun(
    trx,
    planRun(manifest, runRequestWithDefaults(manifest, goal), runId, now),
    {
      tenant,
      runId,
      requestId: derivedId('req', keyId, conversation, latest?.run_id ?? ''),
      requestDigest: canonicalDigest({ keyId, conversation }),
      // All runs of a conversation share its session, and so the caps of the session.
      sessionId: derivedId('ses', tenant, keyId, conversation),
      createdBy: subject,
      key: { keyId, conversation },
      goal,
      dataJson: '',
      labels: {},
      traceparent,
      definitions: descendants(manifest, agents),
    },
    now,
  );
}

/** A request for a run with the limits of its manifest. */
function runRequestWithDefaults({ spawnBudget }: AgentManifest, goal: string): RunRequest {
  return {
    goal,
    dataJson: '',
    runBudget: {},
    sessionBudget: undefined,
    spawnBudget,
    priority: undefined,
    retention: undefined,
    model: '',
  };
}

/**
 * Returns the definition of the external agent to which a key is bound.
 * @throws NotFoundError AGENT_NOT_FOUND; PreconditionError RUN_NOT_EXTERNAL
 */
function externalManifest(agents: SupervisorContext['agents'], { agent }: Holder): AgentManifest {
  const manifest = manifestFor(agents, agent);
  if (manifest.kind === 'external') return manifest;
  throw new PreconditionError(
    'RUN_NOT_EXTERNAL',
    `The key is bound to agent "${agent}", which is of kind ${manifest.kind}, not external; create a key for an external agent.`,
    { field: 'agent' },
  );
}

/**
 * Waits until a run is no longer PENDING: its agent has been delivered, or the run is ending.
 * @throws PreconditionError RUN_ENDED, HALTED; UnavailableError AGENT_NOT_DELIVERED after `childWaitMs`
 */
async function awaitDelivery(
  context: SupervisorContext,
  run: RunRow,
  signal: AbortSignal,
): Promise<RunRow> {
  const key = { tenant: run.tenant, runId: run.run_id };
  const started = await awaitRunChange(context, key, signal, async () => {
    const row = await loadRun(context.store.db, key);
    if (row.state !== 'PENDING') return row;
    // A halt delays the delivery until it is lifted.
    await assertNotHalted(context.store.db, rootKeyOf(row));
    return undefined;
  });
  if (started === undefined) {
    throw new UnavailableError(
      'AGENT_NOT_DELIVERED',
      `Run ${run.run_id} has not started yet; retry.`,
      { run_id: run.run_id, retry_after_ms: '1000' },
    );
  }
  if (started.ended_at === null && started.state !== 'ENDING') return started;
  throw new PreconditionError('RUN_ENDED', `Run ${run.run_id} has ended. Start a new run.`, {
    run_id: run.run_id,
  });
}
