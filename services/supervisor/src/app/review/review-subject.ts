import { type AgentRef, PreconditionError, Priority, type PriorityName } from '@writ/kernel';
import type { BudgetView, Facts, SupervisionView } from '@writ/policy';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import type { Situation } from '../../domain/review/judge.ts';
import { toPolicyRisk } from '../../domain/review/reviewed-tool.ts';
import { type AgentKey, type AgentRow, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { agentRefOf, parentRefOf, rootRefOf } from '../../wire/supervision.ts';

/** An agent that proposes, and all that a review has to know of it. */
export interface Acting {
  readonly key: AgentKey;
  readonly run: RunRow;
  readonly agent: AgentRow;
  readonly ref: AgentRef;
  readonly manifest: AgentManifest;
}

/** An agent whose row was read, with its run. */
export async function actingOf(trx: SupervisorTransaction, agent: AgentRow): Promise<Acting> {
  const key = keyOf(agent);
  const run = await loadRun(trx, key);
  return { key, run, agent, ref: agentRefOf(agent), manifest: manifestFromJson(agent.manifest) };
}

/** Whether the agent and its run have no ending yet. */
export function isAlive({ run, agent }: Acting): boolean {
  return agent.ended_at === null && run.ended_at === null && run.state !== 'ENDING';
}

/**
 * Checks that the agent may still act (RT-4, SV-9).
 * @throws PreconditionError RUN_ENDED naming the stop reason, HALTED by whom and why
 */
export async function assertActs(trx: SupervisorTransaction, acting: Acting): Promise<void> {
  const { run, agent, key } = acting;
  if (!isAlive(acting)) {
    const root = rootRefOf(run).instance;
    const ended =
      agent.ended_at === null ? await loadAgent(trx, { ...key, instance: root }) : agent;
    const stopReason = ended.ending_stop_reason ?? '';
    throw new PreconditionError(
      'RUN_ENDED',
      `Agent ${agent.instance} of run ${run.run_id} has ended with ${stopReason}.`,
      { run_id: run.run_id, agent: agent.instance, stop_reason: stopReason },
    );
  }
  await assertNotHalted(trx, key);
}

/** Everything that rules look at besides the action (SV-3). */
export function situationOf(acting: Acting, facts: Facts, activeMs: number): Situation {
  const { run, agent, ref, manifest } = acting;
  const { approvalRequiredRisk } = manifest;
  return {
    facts,
    agent: ref,
    tenant: run.tenant,
    supervision: supervisionView(run, agent),
    budget: budgetView(acting, activeMs),
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

/** What was spent on models only the meter knows; a review takes no hop to ask it. */
function budgetView({ run, agent, manifest }: Acting, activeMs: number): BudgetView {
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
