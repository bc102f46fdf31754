import type { SpawnChildRequest } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { derivedId, type HistoryRetention, InvalidRequestError } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { type ChildTerms, type Parent, planChild } from '../../domain/child/plan-child.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import type { ChildOrderPayload } from '../../domain/order/order-payloads.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { type AgentRow, clockOf, insertAgent, loadAgent } from '../../store/agent/agents.ts';
import { ownDeadline } from '../../store/agent/deadline.ts';
import { newAgentRow } from '../../store/agent/new-agent.ts';
import { findSpawn, insertSpawn } from '../../store/agent/spawns.ts';
import { placeOrder } from '../../store/orders.ts';
import { type CallKey, loadDecision } from '../../store/review/decisions.ts';
import { findDefinition } from '../../store/run/definitions.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { budgetFrom } from '../../wire/budget.ts';
import { priorityFrom, retentionFrom } from '../../wire/supervision.ts';

/**
 * Places the order for the child of a delegation that may go on, in the transaction that finds so;
 * once, however often it is asked for. What a request may not ask for is refused before a person is
 * bothered with it. Returns whether there is, was or will be a child.
 * @throws InvalidRequestError TOOL_NOT_ALLOWED, MODEL_NOT_ALLOWED, INVALID_BUDGET naming the field
 */
export async function placeSpawn(
  trx: SupervisorTransaction,
  context: Pick<SupervisorContext, 'clock'>,
  key: CallKey,
  request: SpawnChildRequest,
): Promise<boolean> {
  const decision = await loadDecision(trx, key);
  if (decision.stop_reason !== null) return false;
  if ((await findSpawn(trx, key)) !== undefined) return true;
  const now = context.clock.now();
  const row = await loadAgent(trx, key);
  const action = actionFrom(decision.executed_action ?? decision.action);
  const definition =
    action?.kind === 'delegation' ? await findDefinition(trx, key, action.agent) : undefined;
  if (definition === undefined) throw unknownAgent(request);
  const { manifest, models, instance } = planChild(
    parentOf(row, now),
    definition,
    termsOf(request),
    key.callId,
  );
  if (decision.executed_action === null) return false;
  const { tenant, runId } = key;
  const child = { tenant, runId, instance };
  await insertSpawn(trx, {
    tenant,
    run_id: runId,
    parent_instance: key.instance,
    call_id: key.callId,
    child_instance: instance,
    child_name: manifest.name,
    correlation_id: request.correlationId,
    state: 'pending',
    why_not: null,
    paused: null,
    end_call_id: null,
    end_outcome: null,
    resumed: null,
    created_at: now,
  });
  const agent = newAgentRow({ ...child, manifest, models, parent: row });
  const deadlineAt = ownDeadline(await loadRun(trx, key), agent);
  await insertAgent(trx, { ...agent, deadline_at: deadlineAt });
  const payload: ChildOrderPayload = { instance };
  const orderId = derivedId('ord', tenant, runId, instance, 'spawn_child');
  await placeOrder(trx, { orderId, kind: 'spawn_child', tenant, runId, payload }, now);
  return true;
}

function parentOf(row: AgentRow, now: Date): Parent {
  return {
    runId: row.run_id,
    instance: row.instance,
    manifest: manifestFromJson(row.manifest),
    executionBudget: budgetFromJson(row.execution_budget),
    activeMs: activeMsAt(clockOf(row), now),
    retention: row.retention as HistoryRetention,
  };
}

function termsOf(request: SpawnChildRequest): ChildTerms {
  return {
    executionBudget: budgetFrom(request.executionBudget, 'execution_budget'),
    priority: priorityFrom(request.priority),
    tools: request.tools,
    models: request.models,
    retention: retentionFrom(request.retention),
  };
}

/** The run knows no such agent; its own delegations were reviewed against those that it does. */
function unknownAgent({ delegation }: SpawnChildRequest): InvalidRequestError {
  return new InvalidRequestError(
    'AGENT_NOT_FOUND',
    `delegation.agent names ${delegation?.agent}, of which there is no definition any more.`,
    { field: 'delegation.agent' },
  );
}
