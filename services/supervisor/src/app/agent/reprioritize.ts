import type { ReprioritizeRequest } from '@writ/contracts/writ/control/v1/control_service_pb';
import type { ReprioritizeResponse } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import {
  type AgentKey,
  canonicalDigest,
  derivedId,
  PreconditionError,
  UnavailableError,
} from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { affectedTenant } from '../../domain/usage/usage-rights.ts';
import type { Reprioritized } from '../../peers/spawn-budget.ts';
import { loadAgent, saveAgent } from '../../store/agent/agents.ts';
import { noteSlotChange } from '../../store/agent/pauses.ts';
import { findSpawnOf } from '../../store/agent/spawns.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { rememberRequest, requestsOf } from '../../store/requests.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { priorityFrom } from '../../wire/supervision.ts';

const METHOD = 'writ.control.v1.ControlService/Reprioritize';

/**
 * Changes the priority of a live agent: records the change and its author in the audit record, then changes the pool,
 * which may pause or resume agents (SB-5). When spawn-budget does not answer, a repeat of the request completes it.
 * @throws PermissionDeniedError OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; PreconditionError
 *   RUN_ENDED; UnavailableError AGENT_NOT_DELIVERED; InvalidRequestError REQUEST_ID_REUSED; the errors of spawn-budget
 */
export async function reprioritize(
  context: SupervisorContext,
  person: Person,
  { requestId, tenant: named, runId, agentInstance, priority }: ReprioritizeRequest,
): Promise<ReprioritizeResponse> {
  const run = { tenant: affectedTenant(person, named), runId };
  const { subject, tenant } = person;
  const { root_instance } = await loadRun(context.store.db, run);
  const key = { ...run, instance: agentInstance || root_instance };
  const name = priorityFrom(priority);
  const order = async ({ trx, at }: Tx): Promise<Date | undefined> => {
    const agent = await loadAgent(trx, key);
    if (agent.ended_at !== null) throw agentEnded(key);
    if (await isBeingStarted(trx, key)) throw notDelivered(key);
    const digest = canonicalDigest({ ...key, priority: name ?? '' });
    const request = { tenant, subject, method: METHOD, requestId, digest };
    if (!(await rememberRequest(trx, request, at))) return undefined;
    const facts = { ordered_by: subject, ordered_for: tenant, from: agent.priority, to: name };
    await appendAudit(trx, { ...key, kind: 'reprioritize', facts }, at);
    return at;
  };
  const orderedAt = await transact(context, order, { run: key, resource: requestsOf(person) });
  const id = derivedId('req', tenant, subject, METHOD, requestId);
  const changed = await context.peers.spawnBudget.reprioritize(id, key, priority);
  await recordChange(context, key, changed, orderedAt);
  return changed.response;
}

/**
 * Whether an order still starts the agent. A retry of that order must send the same priority under the same request
 * ids, so the priority must not change before the agent is delivered.
 */
async function isBeingStarted(trx: SupervisorTransaction, key: AgentKey): Promise<boolean> {
  const { state, root_instance } = await loadRun(trx, key);
  if (key.instance === root_instance) return state === 'PENDING';
  return (await findSpawnOf(trx, key))?.state === 'pending';
}

/**
 * Records the new priority, so that new tokens of the agent contain it. If `orderedAt` is set, also records the pauses
 * and resumptions, so that a paused agent is rejected at once (SB-4). A repeated request does not record them, because
 * later requests may have undone the changes of the first request; spawn-budget reports all changes as events.
 */
async function recordChange(
  context: SupervisorContext,
  key: AgentKey,
  { response, paused, resumed }: Reprioritized,
  orderedAt: Date | undefined,
): Promise<void> {
  const work = async ({ trx, at: now }: Tx): Promise<void> => {
    const priority = response.slot && priorityFrom(response.slot.priority);
    if (priority !== undefined) await saveAgent(trx, key, { priority });
    if (orderedAt === undefined) return;
    for (const [change, agents] of [
      ['paused', paused],
      ['resumed', resumed],
    ] as const) {
      for (const { instance } of agents) {
        await noteSlotChange(trx, { ...key, instance }, { change, at: orderedAt }, now);
      }
    }
  };
  await transact(context, work, { run: key });
}

function agentEnded({ instance }: AgentKey): PreconditionError {
  return new PreconditionError(
    'RUN_ENDED',
    `Agent ${instance} has ended; only the priority of a live agent can be changed.`,
    { agent_instance: instance },
  );
}

function notDelivered({ runId, instance }: AgentKey): UnavailableError {
  return new UnavailableError(
    'AGENT_NOT_DELIVERED',
    `Agent ${instance} of run ${runId} is being started; retry.`,
    { run_id: runId, agent_instance: instance },
  );
}
