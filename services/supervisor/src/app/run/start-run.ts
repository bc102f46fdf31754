import { randomBytes } from 'node:crypto';
import type { StartRunRequest } from '@writ/contracts/writ/run/v1/run_service_pb';
import { derivedId, InvalidRequestError, NotFoundError, newId, sha256Hex } from '@writ/kernel';
import { type CallContext, type Person, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { descendants } from '../../domain/manifest/descendants.ts';
import { budgetToJson } from '../../domain/manifest/manifest-json.ts';
import { planRun, type RunPlan } from '../../domain/run/plan-run.ts';
import { type AgentRow, insertAgent } from '../../store/agent/agents.ts';
import { newAgentRow } from '../../store/agent/new-agent.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { placeOrder } from '../../store/orders.ts';
import { insertDefinitions } from '../../store/run/definitions.ts';
import { assertRunQuota } from '../../store/run/run-quota.ts';
import { findRunByRequest, insertRun, insertRunLabels, type RunRow } from '../../store/run/runs.ts';
import { claimSession } from '../../store/run/sessions.ts';
import type { SupervisorReader, SupervisorTransaction } from '../../store/supervisor-store.ts';
import { runRequestFrom, startRunDigest } from '../../wire/run.ts';
import { rootRefOf } from '../../wire/supervision.ts';

/**
 * Records a run and the order that starts it, or returns the run of a repeated request. Tenant and creator come
 * only from the caller's credentials (SYS-6).
 * @throws NotFoundError AGENT_NOT_FOUND; InvalidRequestError REQUEST_ID_REUSED and the errors of planRun;
 *   PermissionDeniedError SESSION_WRONG_OWNER; PreconditionError HALTED; OverloadedError RUN_QUOTA_EXCEEDED,
 *   START_QUEUE_FULL
 */
export async function startRun(
  context: SupervisorContext,
  request: StartRunRequest,
  call: CallContext,
): Promise<RunRow> {
  const person = requirePerson(call);
  const digest = startRunDigest(request);
  const repeated = await findRepeated(context.store.db, person, request.requestId, digest);
  if (repeated !== undefined) return repeated;
  const { agents } = context;
  const manifest = manifestFor(agents, request.agent);
  const now = context.clock.now();
  const runId = newId('run');
  const plan = planRun(manifest, runRequestFrom(request, manifest), runId, now);
  const release = context.starts.reserve(person.tenant, performance.now());
  // The transaction also reads request ids, sessions and the quota of the tenant, so starts of the same tenant must not
  // run concurrently.
  const touched = { run: { tenant: person.tenant, runId }, resource: `starts:${person.tenant}` };
  const recorded = context.store.transaction(async (trx) => {
    const raced = await findRepeated(trx, person, request.requestId, digest);
    if (raced !== undefined) return raced;
    const { tenant } = person;
    await assertNotHalted(trx, { tenant });
    await assertRunQuota(trx, tenant, context.config.maxRunsPerTenant);
    const run = await recordRun(
      trx,
      plan,
      {
        tenant: person.tenant,
        runId,
        requestId: request.requestId,
        requestDigest: digest,
        sessionId: request.sessionId === '' ? derivedId('ses', runId) : request.sessionId,
        createdBy: person.subject,
        goal: request.goal,
        dataJson: request.dataJson,
        labels: request.labels,
        traceparent: call.traceparent,
        definitions: descendants(manifest, agents),
      },
      now,
    );
    await context.events.runStarted(trx, { run, agent: rootRefOf(run) }, now);
    return run;
  }, touched);
  return await recorded.finally(release);
}

async function findRepeated(
  db: SupervisorReader,
  { tenant, subject }: Person,
  requestId: string,
  digest: string,
): Promise<RunRow | undefined> {
  const run = await findRunByRequest(db, tenant, subject, requestId);
  if (run === undefined || run.request_digest === digest) return run;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was already used for a different run; use a new request_id.`,
    { field: 'request_id', run_id: run.run_id },
  );
}

/**
 * The agent that a run starts with.
 * @throws NotFoundError AGENT_NOT_FOUND
 */
export function manifestFor(agents: SupervisorContext['agents'], name: string): AgentManifest {
  const manifest = agents.get(name);
  if (manifest !== undefined && !manifest.delegateOnly) return manifest;
  const problem =
    manifest === undefined
      ? 'does not exist'
      : 'can only be started by other agents (delegate_only)';
  const names = startableAgents(agents).map((agent) => agent.name);
  throw new NotFoundError(
    'AGENT_NOT_FOUND',
    `Agent "${name}" ${problem}. Available agents: ${names.join(', ')}.`,
    { field: 'agent' },
  );
}

/** Returns the agents that clients can start, sorted by name. */
export function startableAgents(agents: SupervisorContext['agents']): readonly AgentManifest[] {
  return [...agents.values()]
    .filter(({ delegateOnly }) => !delegateOnly)
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** The fields of a run besides its plan. */
interface NewRun {
  readonly tenant: string;
  readonly runId: string;
  readonly requestId: string;
  readonly requestDigest: string;
  readonly sessionId: string;
  readonly createdBy: string;
  readonly goal: string;
  readonly dataJson: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The trace context of the call that starts it; all work for the run belongs to this trace (SYS-1). */
  readonly traceparent: string;
  /** The agent key that opens it; undefined for a StartRun call (AP-1). */
  readonly key?: { readonly keyId: string; readonly conversation: string };
  /** The agents to which its root can delegate, directly or indirectly. */
  readonly definitions: readonly AgentManifest[];
}

/**
 * Records a run with its root and places the order that starts it.
 * @throws PermissionDeniedError SESSION_WRONG_OWNER
 */
export async function recordRun(
  trx: SupervisorTransaction,
  plan: RunPlan,
  given: NewRun,
  now: Date,
): Promise<RunRow> {
  const { tenant, runId } = given;
  await claimSession(trx, given, now);
  const run = runRow(plan, given, now);
  await insertRun(trx, run);
  await insertRunLabels(trx, { tenant, runId }, given.labels);
  await insertDefinitions(trx, { tenant, runId }, given.definitions);
  await insertAgent(trx, rootRow(plan, given));
  await placeOrder(
    trx,
    {
      orderId: derivedId('ord', tenant, runId, 'start_run'),
      kind: 'start_run',
      tenant,
      runId,
      payload: {},
    },
    now,
  );
  await appendAudit(
    trx,
    {
      tenant,
      kind: 'run_started',
      runId,
      instance: run.root_instance,
      facts: {
        agent: run.agent_name,
        definition_hash: run.definition_hash,
        model: run.model,
        session_id: run.session_id,
        started_by: run.created_by,
        goal_sha256: sha256Hex(run.goal),
      },
    },
    now,
  );
  return run;
}

function runRow(plan: RunPlan, given: NewRun, now: Date): RunRow {
  const { manifest } = plan;
  return {
    tenant: given.tenant,
    run_id: given.runId,
    request_id: given.requestId,
    request_digest: given.requestDigest,
    session_id: given.sessionId,
    agent_name: manifest.name,
    agent_kind: manifest.kind,
    root_instance: plan.rootInstance,
    goal: given.goal,
    data_json: given.dataJson,
    state: 'PENDING',
    created_by: given.createdBy,
    key_id: given.key?.keyId ?? null,
    conversation: given.key?.conversation ?? null,
    created_at: now,
    changed_at: now,
    deadline_at: plan.deadlineAt,
    run_budget: budgetToJson(plan.runBudget),
    session_budget: plan.sessionBudget === undefined ? null : budgetToJson(plan.sessionBudget),
    spawn_budget: JSON.stringify(plan.spawnBudget),
    priority: manifest.priority,
    retention: manifest.retention,
    labels: JSON.stringify(given.labels),
    trace_id: given.traceparent.split('-')[1] ?? '',
    traceparent: given.traceparent,
    definition_hash: manifest.definitionHash,
    event_key: randomBytes(32).toString('hex'),
    model: manifest.model.model,
    usage: null,
    result: null,
    ended_at: null,
    purged_at: null,
    approved_calls: 0,
  };
}

function rootRow({ manifest, rootInstance }: RunPlan, { tenant, runId }: NewRun): AgentRow {
  const { model, alsoAllowed } = manifest.model;
  const models = model === '' ? [] : [model, ...alsoAllowed];
  return newAgentRow({ tenant, runId, instance: rootInstance, manifest, models });
}
