import type { SpawnChildRequest } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import {
  type AgentRef,
  type CallKey,
  derivedId,
  type HistoryRetention,
  InvalidRequestError,
  PreconditionError,
  UnavailableError,
} from '@writ/kernel';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { type ChildTerms, type Parent, planChild } from '../../domain/child/plan-child.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import type { ChildOrderPayload } from '../../domain/order/order-payloads.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { type AgentRow, clockOf, insertAgent, loadAgent } from '../../store/agent/agents.ts';
import { ownDeadline } from '../../store/agent/deadline.ts';
import { newAgentRow } from '../../store/agent/new-agent.ts';
import {
  agentsFrom,
  childKeyOf,
  findSpawn,
  insertSpawn,
  type SpawnRow,
} from '../../store/agent/spawns.ts';
import { placeOrder } from '../../store/orders.ts';
import { loadDecision } from '../../store/review/decisions.ts';
import { findDefinition } from '../../store/run/definitions.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { budgetFrom } from '../../wire/budget.ts';
import type { DecisionMessage } from '../../wire/decision.ts';
import { priorityFrom, retentionFrom } from '../../wire/supervision.ts';
import { type ReviewRequest, reviewProposal } from '../review/review-proposal.ts';
import { callingAgent } from './admit-agent.ts';
import { awaitRunChange } from './await-run.ts';

/** A child that has a slot and a tab and was delivered to a worker. */
export interface SpawnedChild {
  readonly agent: AgentRow;
  readonly run: RunRow;
  /** The agent that was paused to free the slot; undefined if no agent was paused. */
  readonly paused: AgentRef | undefined;
}

/** The result of a reviewed delegation. */
export interface ReviewedSpawn {
  readonly decision: DecisionMessage;
  /** Why the child of an approved delegation got no slot; undefined when the child got a slot. */
  readonly slotRefusal?: string;
  /** Undefined when the delegation is not approved or the child got no slot. */
  readonly child?: SpawnedChild;
}

/**
 * Reviews a delegation, places the order `spawn_child` in the same transaction when it is approved, and waits until
 * the order is done (SV-1, SUP-9).
 * @throws UnavailableError SPAWN_PENDING when the order takes longer than `childWaitMs`; PreconditionError
 *   SPAWN_FAILED; the errors of reviewProposal and enqueueSpawn
 */
export async function spawnChild(
  context: SupervisorContext,
  request: SpawnChildRequest,
  review: ReviewRequest,
): Promise<ReviewedSpawn> {
  const { callId } = request;
  const key: CallKey = { ...callingAgent(review.call), callId };
  const { decision, placed } = await transact(
    context,
    async (tx) => ({
      decision: await reviewProposal(tx, review),
      placed: await enqueueSpawn(tx, key, request),
    }),
    { run: key },
  );
  if (!placed) return { decision };
  const { store } = context;
  const spawn = await awaitRunChange(context, key, review.call.signal, async () => {
    const row = await findSpawn(store.db, key);
    return row?.state === 'pending' ? undefined : row;
  });
  if (spawn === undefined) throw spawnPending(callId);
  if (spawn.state === 'failed') throw spawnFailed(spawn);
  if (spawn.state === 'refused') return { decision, slotRefusal: spawn.why_not ?? '' };
  const childKey = childKeyOf(spawn);
  const agent = await loadAgent(store.db, childKey);
  const [paused] = agentsFrom(spawn.paused);
  return { decision, child: { agent, run: await loadRun(store.db, childKey), paused } };
}

/**
 * Places the order for the child of an approved delegation, once per call. While an approval is pending, places no
 * order, but already rejects an invalid request, so that no person has to decide on it. Returns whether an order for a
 * child exists.
 * @throws InvalidRequestError AGENT_NOT_FOUND, BUDGET_ABOVE_PARENT, TOOL_NOT_ALLOWED, MODEL_NOT_ALLOWED, INVALID_BUDGET
 *   naming the field
 */
async function enqueueSpawn(
  { trx, at }: Tx,
  key: CallKey,
  request: SpawnChildRequest,
): Promise<boolean> {
  const decision = await loadDecision(trx, key);
  if (decision.stop_reason !== null) return false;
  if ((await findSpawn(trx, key)) !== undefined) return true;
  const row = await loadAgent(trx, key);
  const action = actionFrom(decision.executed_action ?? decision.action);
  const definition =
    action?.kind === 'delegation' ? await findDefinition(trx, key, action.agent) : undefined;
  if (definition === undefined) throw unknownAgent(request);
  const { manifest, models, instance } = planChild(
    parentOf(row, at),
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
    created_at: at,
  });
  const agent = newAgentRow({ ...child, manifest, models, parent: row });
  const deadlineAt = ownDeadline(await loadRun(trx, key), agent);
  await insertAgent(trx, { ...agent, deadline_at: deadlineAt });
  const payload: ChildOrderPayload = { instance };
  const orderId = derivedId('ord', tenant, runId, instance, 'spawn_child');
  await placeOrder(trx, { orderId, kind: 'spawn_child', tenant, runId, payload }, at);
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

/** Returns the error for a delegation to an agent that the definitions of the run do not include. */
function unknownAgent({ delegation }: SpawnChildRequest): InvalidRequestError {
  return new InvalidRequestError(
    'AGENT_NOT_FOUND',
    `delegation.agent "${delegation?.agent}" has no definition in this run.`,
    { field: 'delegation.agent' },
  );
}

function spawnPending(callId: string): UnavailableError {
  return new UnavailableError(
    'SPAWN_PENDING',
    `The agent for call ${callId} is still being set up; repeat the call.`,
    { call_id: callId },
  );
}

function spawnFailed({ child_name: name, call_id: callId, why_not: reason }: SpawnRow) {
  return new PreconditionError(
    'SPAWN_FAILED',
    `Agent ${name} could not be set up: ${reason}. The supervisor releases its slot and tab.`,
    { call_id: callId, cause: reason ?? '' },
  );
}
