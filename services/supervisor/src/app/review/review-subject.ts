import {
  type AgentKey,
  type AgentRef,
  PreconditionError,
  Priority,
  type PriorityName,
} from '@writ/kernel';
import type { BudgetView, Facts, SupervisionView } from '@writ/policy';
import type { CallContext } from '@writ/rpc';
import type { Tx } from '../../context.ts';
import { pauseHolds } from '../../domain/agent/pause.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import type { Situation } from '../../domain/review/judge.ts';
import { toPolicyRisk } from '../../domain/review/reviewed-tool.ts';
import { type AgentRow, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { noteSlotChange, slotOf } from '../../store/agent/pauses.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { agentRefOf, parentRefOf } from '../../wire/supervision.ts';

/** The agent whose proposals are reviewed, with its run and manifest. */
export interface ReviewSubject {
  readonly key: AgentKey;
  readonly run: RunRow;
  readonly agent: AgentRow;
  readonly ref: AgentRef;
  readonly manifest: AgentManifest;
}

/** Loads the run of an agent. */
export async function subjectOf(
  trx: SupervisorTransaction,
  agent: AgentRow,
): Promise<ReviewSubject> {
  const key = keyOf(agent);
  const run = await loadRun(trx, key);
  return { key, run, agent, ref: agentRefOf(agent), manifest: manifestFromJson(agent.manifest) };
}

/** Whether an agent is alive: no ending is recorded for the agent or its run. */
export function isAlive({ run, agent }: ReviewSubject): boolean {
  return agent.ended_at === null && run.ended_at === null && run.state !== 'ENDING';
}

/**
 * Checks that the agent has not ended and is not halted (RT-4, SV-9).
 * @throws PreconditionError RUN_ENDED with the stop reason; HALTED with who ordered the halt and why
 */
export async function assertMayAct(
  trx: SupervisorTransaction,
  subject: ReviewSubject,
): Promise<void> {
  await assertAlive(trx, subject);
  await assertNotHalted(trx, subject.key);
}

/**
 * Checks that the agent and its run have not ended (RT-4).
 * @throws PreconditionError RUN_ENDED with the stop reason
 */
export async function assertAlive(
  trx: SupervisorTransaction,
  subject: ReviewSubject,
): Promise<void> {
  if (isAlive(subject)) return;
  const { run, agent, key } = subject;
  const { run_id, root_instance } = run;
  const isEnding = agent.ended_at === null;
  const ended = isEnding ? await loadAgent(trx, { ...key, instance: root_instance }) : agent;
  const stopReason = ended.ending_stop_reason ?? '';
  throw new PreconditionError(
    'RUN_ENDED',
    isEnding
      ? `Run ${run_id} is ending with ${stopReason}, so agent ${agent.instance} can no longer act.`
      : `Agent ${agent.instance} of run ${run_id} has ended with ${stopReason}.`,
    { run_id, agent: agent.instance, stop_reason: stopReason },
  );
}

/**
 * Rejects a paused agent, although its slot grant may be valid for some seconds (SB-4). A grant signed after the
 * pause proves that the agent has a slot again, and ends the pause. Returns the agent after that.
 * @throws PreconditionError AGENT_PAUSED
 */
export async function assertHoldsSlot(
  { trx, at }: Tx,
  subject: ReviewSubject,
  { caller }: Pick<CallContext, 'caller'>,
): Promise<ReviewSubject> {
  const { agent, key } = subject;
  if (agent.paused_since === null) return subject;
  if (pauseHolds(slotOf(agent), caller.slotGrant?.expireTime, at)) {
    throw new PreconditionError(
      'AGENT_PAUSED',
      `Agent ${agent.instance} of run ${agent.run_id} is paused and has no slot. Retry when it is resumed, or end it with a partial final.`,
      { run_id: agent.run_id, agent: agent.instance },
    );
  }
  await noteSlotChange(trx, key, { change: 'resumed', at }, at);
  return { ...subject, agent: await loadAgent(trx, key) };
}

/** The input of the policy besides the action (SV-3). */
export function situationOf(subject: ReviewSubject, facts: Facts, activeMs: number): Situation {
  const { run, agent, ref, manifest } = subject;
  const { approvalRequiredRisk } = manifest;
  return {
    facts,
    agent: ref,
    tenant: run.tenant,
    supervision: supervisionView(run, agent),
    budget: budgetView(subject, activeMs),
    approvalRequiredRisk:
      approvalRequiredRisk === undefined ? undefined : toPolicyRisk(approvalRequiredRisk),
  };
}

function supervisionView(run: RunRow, agent: AgentRow): SupervisionView {
  return {
    runId: run.run_id,
    sessionId: run.session_id,
    parentId: parentRefOf(agent),
    depth: agent.depth,
    priority: Priority[agent.priority as PriorityName],
    retention: agent.retention,
  };
}

/**
 * Returns the budget for the policy, without token and cost usage, which only the meter has and which a review does not
 * request.
 */
function budgetView({ run, agent, manifest }: ReviewSubject, activeMs: number): BudgetView {
  const budget = budgetFromJson(agent.execution_budget);
  return {
    steps_used: agent.steps,
    max_steps: manifest.limits.maxSteps,
    tool_calls_used: run.approved_calls,
    max_tool_calls: manifest.limits.maxToolCalls,
    max_tokens: budget.maxTokens,
    max_turns: budget.maxTurns,
    max_cost_nano_usd: budget.maxCostNanoUsd,
    active_ms: activeMs,
    max_active_ms: budget.maxActiveMs,
  };
}
