import {
  type ExecutionBudget,
  HistoryRetention,
  InvalidRequestError,
  narrowExecutionBudget,
  type PriorityName,
} from '@writ/kernel';
import type { AgentManifest } from '../manifest/agent-manifest.ts';
import { offeredTools } from '../manifest/applicable-settings.ts';
import {
  assertModelAllowed,
  childInstanceOf,
  lowerPriority,
  shorterRetention,
} from '../manifest/narrow.ts';

/** The parent, with the limits that bind its child. */
export interface Parent {
  readonly runId: string;
  readonly instance: string;
  readonly manifest: AgentManifest;
  readonly executionBudget: ExecutionBudget;
  /** Active time used, in milliseconds. */
  readonly activeMs: number;
  readonly retention: HistoryRetention;
}

/**
 * What the worker requests for the child; an omitted field has the value of the manifest, except an omitted retention,
 * which is `run`.
 */
export interface ChildTerms {
  readonly executionBudget: ExecutionBudget;
  readonly priority: PriorityName | undefined;
  /** Empty selects all tools of the manifest. */
  readonly tools: readonly string[];
  /** Empty selects all models of the manifest. */
  readonly models: readonly string[];
  readonly retention: HistoryRetention | undefined;
}

/** The effective limits of a child. */
export interface ChildPlan {
  readonly instance: string;
  /** Its manifest with the effective limits. */
  readonly manifest: AgentManifest;
  /** Catalog aliases that it may use; the first is its default. */
  readonly models: readonly string[];
}

/**
 * Returns the effective limits of a child (SUP-9). Each budget, the priority and the retention are the lowest that the
 * parent, the manifest of the child and the request allow. A requested tool or model that the manifest does not allow
 * is rejected, as is a requested budget above the budget of the parent.
 * @throws InvalidRequestError BUDGET_ABOVE_PARENT, TOOL_NOT_ALLOWED, MODEL_NOT_ALLOWED naming the field
 */
export function planChild(
  parent: Parent,
  child: AgentManifest,
  terms: ChildTerms,
  callId: string,
): ChildPlan {
  assertWithin(parent, terms.executionBudget);
  const tools = toolsOf(child, terms.tools);
  const models = modelsOf(child, terms.models);
  const [model = child.model.model, ...alsoAllowed] = models;
  const isOffered = offeredTools(tools, child.subAgents).includes(child.initialToolChoice);
  const entry = parent.manifest.subAgents.find(({ name }) => name === child.name);
  return {
    instance: childInstanceOf(child.name, parent.runId, parent.instance, callId),
    models,
    manifest: {
      ...child,
      tools,
      initialToolChoice: isOffered ? child.initialToolChoice : '',
      model: { ...child.model, model, alsoAllowed },
      limits: { ...child.limits, ...toolCallsOf(parent.manifest, child) },
      executionBudget: budgetOf(parent, child, terms),
      spawnBudget: parent.manifest.spawnBudget,
      priority: lowerPriority(lowerPriority(child.priority, entry?.priority), terms.priority),
      retention: retentionOf(parent, child, terms),
    },
  };
}

/** Names of the budget dimensions in requests. */
const DIMENSIONS: Readonly<Record<keyof ExecutionBudget, string>> = {
  maxTokens: 'max_tokens',
  maxCostNanoUsd: 'max_cost_nano_usd',
  maxTurns: 'max_turns',
  deadlineMs: 'deadline',
  maxActiveMs: 'max_active',
};

/** Rejects a budget above the parent's instead of silently capping it (SUP-9). */
function assertWithin({ instance, executionBudget }: Parent, asked: ExecutionBudget): void {
  for (const dimension of Object.keys(DIMENSIONS) as (keyof ExecutionBudget)[]) {
    const own = executionBudget[dimension];
    const wanted = asked[dimension];
    if (own === undefined || wanted === undefined || wanted <= own) continue;
    const name = DIMENSIONS[dimension];
    const unit = name.startsWith('max_') && dimension !== 'maxActiveMs' ? '' : ' ms';
    throw new InvalidRequestError(
      'BUDGET_ABOVE_PARENT',
      `execution_budget.${name} ${wanted}${unit} exceeds ${own}${unit}, the budget of the parent ${instance}.`,
      { field: `execution_budget.${name}`, dimension: name, limit: String(own) },
    );
  }
}

/**
 * Returns the lowest of the budgets of the manifest, the request and the parent. For active time, the budget of the
 * parent is its remaining active time.
 */
function budgetOf(
  { executionBudget, activeMs }: Parent,
  child: AgentManifest,
  terms: ChildTerms,
): ExecutionBudget {
  const { maxActiveMs } = executionBudget;
  const left: ExecutionBudget =
    maxActiveMs === undefined ? {} : { maxActiveMs: Math.max(0, maxActiveMs - activeMs) };
  const allowed = narrowExecutionBudget(executionBudget, child.executionBudget);
  return narrowExecutionBudget(narrowExecutionBudget(allowed, left), terms.executionBudget);
}

/**
 * Returns the retention of a child. Its content is deleted after the end of the run, unless the request asks for
 * permanent retention and the manifest of the child and the parent allow it (SUP-1, SUP-4).
 */
function retentionOf(
  parent: Parent,
  child: AgentManifest,
  { retention = HistoryRetention.RUN }: ChildTerms,
): HistoryRetention {
  return shorterRetention(shorterRetention(child.retention, parent.retention), retention);
}

/**
 * Returns the lower cap on tool calls of parent and child; empty if neither has one. The gateway counts tool calls per
 * run, so a child must not raise the cap.
 */
function toolCallsOf(parent: AgentManifest, child: AgentManifest): { maxToolCalls?: number } {
  const caps = [parent.limits.maxToolCalls, child.limits.maxToolCalls];
  const set = caps.filter((cap) => cap !== undefined);
  return set.length === 0 ? {} : { maxToolCalls: Math.min(...set) };
}

function toolsOf(child: AgentManifest, wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) return child.tools;
  for (const tool of wanted) {
    if (child.tools.includes(tool)) continue;
    throw new InvalidRequestError(
      'TOOL_NOT_ALLOWED',
      `tools contains ${tool}, which is not a tool of ${child.name}.`,
      { field: 'tools', tool },
    );
  }
  return child.tools.filter((tool) => wanted.includes(tool));
}

function modelsOf(child: AgentManifest, wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) {
    const { model, alsoAllowed } = child.model;
    // A tab needs names, so patterns are omitted.
    const names = [model, ...alsoAllowed.filter((alias) => !alias.includes('*'))];
    return [...new Set(names.filter((alias) => alias !== ''))];
  }
  for (const model of wanted) assertModelAllowed(child, model, 'models');
  return [...new Set(wanted)];
}
