import { derivedId, sha256Hex } from '@writ/kernel';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { budgetToJson } from '../../domain/manifest/manifest-json.ts';
import type { RunPlan } from '../../domain/run/plan-run.ts';
import { type AgentRow, insertAgent } from '../../store/agent/agents.ts';
import { newAgentRow } from '../../store/agent/new-agent.ts';
import { appendAudit } from '../../store/audit.ts';
import { placeOrder } from '../../store/orders.ts';
import { insertDefinitions } from '../../store/run/definitions.ts';
import { insertRun, insertRunLabels, type RunRow } from '../../store/run/runs.ts';
import { claimSession } from '../../store/run/sessions.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** What a run has besides its plan. */
export interface NewRun {
  readonly tenant: string;
  readonly runId: string;
  readonly requestId: string;
  readonly requestDigest: string;
  readonly sessionId: string;
  readonly createdBy: string;
  readonly goal: string;
  readonly dataJson: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of the call that started it: everything later belongs to its trace (SYS-1). */
  readonly traceparent: string;
  /** The agents that it may hand work to. */
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
    root_instance: plan.rootInstance,
    goal: given.goal,
    data_json: given.dataJson,
    state: 'PENDING',
    created_by: given.createdBy,
    created_at: now,
    deadline_at: plan.deadlineAt,
    run_budget: budgetToJson(plan.runBudget),
    spawn_budget: JSON.stringify(plan.spawnBudget),
    priority: manifest.priority,
    retention: manifest.retention,
    labels: JSON.stringify(given.labels),
    trace_id: given.traceparent.split('-')[1] ?? '',
    traceparent: given.traceparent,
    definition_hash: manifest.definitionHash,
    model: manifest.model.model,
    last_sequence: 0,
    usage: null,
    result: null,
    ended_at: null,
    purged_at: null,
    approved_calls: 0,
  };
}

function rootRow({ manifest, rootInstance }: RunPlan, { tenant, runId }: NewRun): AgentRow {
  const { model } = manifest.model;
  const models = model === '' ? [] : [model];
  return newAgentRow({ tenant, runId, instance: rootInstance, manifest, models });
}
