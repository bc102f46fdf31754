import { toJson } from '@bufbuild/protobuf';
import {
  type StartRunRequest,
  StartRunRequestSchema,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import {
  canonicalDigest,
  derivedId,
  InvalidRequestError,
  NotFoundError,
  newId,
} from '@writ/kernel';
import { type CallContext, type Person, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { descendants } from '../../domain/manifest/descendants.ts';
import { planRun } from '../../domain/run/plan-run.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { assertRunQuota } from '../../store/run/run-quota.ts';
import { findRunByRequest, type RunRow } from '../../store/run/runs.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';
import { budgetFrom, spawnBudgetFrom } from '../../wire/budget.ts';
import { priorityFrom, retentionFrom } from '../../wire/supervision.ts';
import { recordRun } from './record-run.ts';

/**
 * Makes a run and the order that starts it durable, or finds the run that the same request made
 * before. Who starts it, and for which tenant, comes from the caller's credentials alone (SYS-6).
 * @throws NotFoundError AGENT_NOT_FOUND; InvalidRequestError REQUEST_ID_REUSED and what planRun
 *   throws; PermissionDeniedError SESSION_WRONG_OWNER; PreconditionError HALTED; OverloadedError
 *   RUN_QUOTA_EXCEEDED
 */
export async function beginRun(
  context: SupervisorContext,
  request: StartRunRequest,
  call: CallContext,
): Promise<RunRow> {
  const person = requirePerson(call);
  const digest = canonicalDigest(toJson(StartRunRequestSchema, request));
  const repeated = await findRepeated(context.store.db, person, request.requestId, digest);
  if (repeated !== undefined) return repeated;
  const { agents } = context;
  const manifest = manifestFor(agents, request.agent);
  const now = context.clock.now();
  const runId = newId('run');
  const plan = planRun(
    manifest,
    {
      goal: request.goal,
      dataJson: request.dataJson,
      runBudget: budgetFrom(request.runBudget, 'run_budget'),
      spawnBudget: spawnBudgetFrom(request.spawnBudget, manifest.spawnBudget, 'spawn_budget'),
      priority: priorityFrom(request.priority),
      retention: retentionFrom(request.retention),
      model: request.model,
    },
    runId,
    now,
  );
  return await context.store.transaction(async (trx) => {
    const raced = await findRepeated(trx, person, request.requestId, digest);
    if (raced !== undefined) return raced;
    const { tenant } = person;
    await assertNotHalted(trx, { tenant });
    await assertRunQuota(trx, tenant, context.config.maxRunsPerTenant);
    return await recordRun(
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
  });
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
    `request_id ${requestId} was used for another run before; choose a new one.`,
    { field: 'request_id', run_id: run.run_id },
  );
}

function manifestFor(agents: SupervisorContext['agents'], name: string): AgentManifest {
  const manifest = agents.get(name);
  if (manifest !== undefined) return manifest;
  const names = [...agents.keys()].sort().join(', ');
  throw new NotFoundError('AGENT_NOT_FOUND', `There is no agent ${name}; there is ${names}.`, {
    field: 'agent',
  });
}
