import { InvalidRequestError } from './errors.ts';

/** Headcount for a whole run, shared by its tree (SB-1, SB-7). */
export interface SpawnBudget {
  /** Slots of the run; the root counts as one. */
  readonly maxAgents: number;
  /** Whether HIGH and CRITICAL agents may pause lower ones for a slot. */
  readonly allowPreempt: boolean;
  /** Spawns in the lifetime of the run, the root not counted; unset = unlimited. */
  readonly maxTotalSpawns?: number;
  /** Deepest level an agent may have, the root being 0; unset = unlimited. */
  readonly maxDepth?: number;
}

/** What one agent, or a whole run, may spend (EM-1). Unset = unlimited, zero = zero. */
export interface ExecutionBudget {
  /** Prompt and completion tokens together. */
  readonly maxTokens?: number;
  /** Model cost in nano-USD. */
  readonly maxCostNanoUsd?: bigint;
  /** Model round trips. */
  readonly maxTurns?: number;
  /** Wall-clock milliseconds from the start of the run. */
  readonly deadlineMs?: number;
  /** Milliseconds of active time by the supervisor's clock. */
  readonly maxActiveMs?: number;
}

/** A type whose fields may be left out or explicitly undefined, as decoded messages have them. */
export type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** 50 agents, preemption allowed (SB-1). */
export const DEFAULT_SPAWN_BUDGET: SpawnBudget = Object.freeze({
  maxAgents: 50,
  allowPreempt: true,
});

/** Unlimited in every dimension (EM-1). */
export const UNLIMITED_BUDGET: ExecutionBudget = Object.freeze({});

const MAX_INT64 = 2n ** 63n - 1n;
const COUNTS = ['maxTokens', 'maxTurns', 'deadlineMs', 'maxActiveMs'] as const;

/**
 * A checked, frozen spawn budget; what is left out takes the default.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function createSpawnBudget(
  given: Loose<SpawnBudget> = {},
  path = 'spawn_budget',
): SpawnBudget {
  const budget = definedOnly<SpawnBudget>({
    maxAgents: given.maxAgents ?? DEFAULT_SPAWN_BUDGET.maxAgents,
    allowPreempt: given.allowPreempt ?? DEFAULT_SPAWN_BUDGET.allowPreempt,
    maxTotalSpawns: given.maxTotalSpawns,
    maxDepth: given.maxDepth,
  });
  checkCount(budget.maxAgents, `${path}.max_agents`, 1);
  checkCount(budget.maxTotalSpawns, `${path}.max_total_spawns`);
  checkCount(budget.maxDepth, `${path}.max_depth`);
  return budget;
}

/**
 * A checked, frozen execution budget.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function createExecutionBudget(
  given: Loose<ExecutionBudget> = {},
  path = 'execution_budget',
): ExecutionBudget {
  for (const name of COUNTS) checkCount(given[name], `${path}.${snakeCase(name)}`);
  const cost = given.maxCostNanoUsd;
  if (cost !== undefined && (cost < 0n || cost > MAX_INT64)) {
    throw badBudget(`${path}.max_cost_nano_usd`, 'must be between 0 and 2^63 - 1 nano-USD');
  }
  return definedOnly<ExecutionBudget>({
    maxTokens: given.maxTokens,
    maxCostNanoUsd: given.maxCostNanoUsd,
    maxTurns: given.maxTurns,
    deadlineMs: given.deadlineMs,
    maxActiveMs: given.maxActiveMs,
  });
}

/**
 * The budget that a child may have: what it asked for, and in no dimension more than its parent
 * has (SUP-9). A dimension it does not name is the parent's.
 */
export function narrowExecutionBudget(
  parent: ExecutionBudget,
  requested: ExecutionBudget,
): ExecutionBudget {
  return definedOnly<ExecutionBudget>({
    maxTokens: smaller(parent.maxTokens, requested.maxTokens),
    maxCostNanoUsd: smaller(parent.maxCostNanoUsd, requested.maxCostNanoUsd),
    maxTurns: smaller(parent.maxTurns, requested.maxTurns),
    deadlineMs: smaller(parent.deadlineMs, requested.deadlineMs),
    maxActiveMs: smaller(parent.maxActiveMs, requested.maxActiveMs),
  });
}

/**
 * A spawn budget no larger than `allowed` in any dimension (SUP-9): the manifest allows, a request
 * narrows. Preemption needs both to allow it.
 */
export function narrowSpawnBudget(allowed: SpawnBudget, requested: SpawnBudget): SpawnBudget {
  return definedOnly<SpawnBudget>({
    maxAgents: Math.min(allowed.maxAgents, requested.maxAgents),
    allowPreempt: allowed.allowPreempt && requested.allowPreempt,
    maxTotalSpawns: smaller(allowed.maxTotalSpawns, requested.maxTotalSpawns),
    maxDepth: smaller(allowed.maxDepth, requested.maxDepth),
  });
}

function smaller<N extends number | bigint>(a: N | undefined, b: N | undefined): N | undefined {
  if (a === undefined) return b;
  if (b === undefined) return a;
  return b < a ? b : a;
}

function definedOnly<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T;
function definedOnly(fields: object): object {
  return Object.freeze(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  );
}

function checkCount(value: number | undefined, field: string, least = 0): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw badBudget(field, `must be a whole number of at least ${least}`);
}

function badBudget(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_BUDGET', `${field} ${rule}.`, { field });
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
