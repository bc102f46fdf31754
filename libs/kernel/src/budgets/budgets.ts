import { InvalidRequestError } from '../errors/errors.ts';
import { omitUndefined } from '../omit-undefined.ts';

/** Headcount for a whole run, shared by its tree (SB-1, SB-7). */
export interface SpawnBudget {
  /** Slots of the run; the root counts as one. */
  readonly maxAgents: number;
  /** Whether HIGH and CRITICAL agents may pause agents of lower priority to get a slot. */
  readonly allowPreempt: boolean;
  /** Spawns in the lifetime of the run, the root not counted; unset = unlimited. */
  readonly maxTotalSpawns?: number;
  /** Deepest level an agent may have, the root being 0; unset = unlimited. */
  readonly maxDepth?: number;
}

/** The spending limits of one agent or a whole run (EM-1). Unset means unlimited, zero means zero. */
export interface ExecutionBudget {
  /** Prompt and completion tokens together. */
  readonly maxTokens?: number;
  /** Model cost in nano-USD. */
  readonly maxCostNanoUsd?: bigint;
  /** Model round trips. */
  readonly maxTurns?: number;
  /** Wall-clock milliseconds from the creation of the run, including the time before it starts. */
  readonly deadlineMs?: number;
  /**
   * Active time in milliseconds, measured by the clock of the supervisor. Time in which the agent is parked, has an
   * expired slot lease, or waits while no agent below it runs does not count.
   */
  readonly maxActiveMs?: number;
}

/** A type whose fields may be omitted or undefined, as in decoded messages. */
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
 * Creates a validated, frozen spawn budget; omitted fields have their defaults.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function createSpawnBudget(
  fields: Loose<SpawnBudget> = {},
  path = 'spawn_budget',
): SpawnBudget {
  const budget = Object.freeze(
    omitUndefined({
      maxAgents: fields.maxAgents ?? DEFAULT_SPAWN_BUDGET.maxAgents,
      allowPreempt: fields.allowPreempt ?? DEFAULT_SPAWN_BUDGET.allowPreempt,
      maxTotalSpawns: fields.maxTotalSpawns,
      maxDepth: fields.maxDepth,
    }),
  );
  checkCount(budget.maxAgents, `${path}.max_agents`, 1);
  checkCount(budget.maxTotalSpawns, `${path}.max_total_spawns`);
  checkCount(budget.maxDepth, `${path}.max_depth`);
  return budget;
}

/**
 * Creates a validated, frozen execution budget.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function createExecutionBudget(
  fields: Loose<ExecutionBudget> = {},
  path = 'execution_budget',
): ExecutionBudget {
  for (const name of COUNTS) checkCount(fields[name], `${path}.${snakeCase(name)}`);
  const cost = fields.maxCostNanoUsd;
  if (cost !== undefined && (cost < 0n || cost > MAX_INT64)) {
    throw badBudget(`${path}.max_cost_nano_usd`, 'must be between 0 and 2^63 - 1 nano-USD');
  }
  return Object.freeze(
    omitUndefined({
      maxTokens: fields.maxTokens,
      maxCostNanoUsd: fields.maxCostNanoUsd,
      maxTurns: fields.maxTurns,
      deadlineMs: fields.deadlineMs,
      maxActiveMs: fields.maxActiveMs,
    }),
  );
}

/**
 * Returns the budget of a child: the requested budget, limited in every dimension by the budget of the parent (SUP-9).
 * A dimension that is not requested has the limit of the parent.
 */
export function narrowExecutionBudget(
  parent: ExecutionBudget,
  requested: ExecutionBudget,
): ExecutionBudget {
  return Object.freeze(
    omitUndefined({
      maxTokens: smaller(parent.maxTokens, requested.maxTokens),
      maxCostNanoUsd: smaller(parent.maxCostNanoUsd, requested.maxCostNanoUsd),
      maxTurns: smaller(parent.maxTurns, requested.maxTurns),
      deadlineMs: smaller(parent.deadlineMs, requested.deadlineMs),
      maxActiveMs: smaller(parent.maxActiveMs, requested.maxActiveMs),
    }),
  );
}

/**
 * Returns the requested spawn budget, limited in every dimension by `allowed` (SUP-9). Preemption is allowed only if
 * both budgets allow it.
 */
export function narrowSpawnBudget(allowed: SpawnBudget, requested: SpawnBudget): SpawnBudget {
  return Object.freeze(
    omitUndefined({
      maxAgents: Math.min(allowed.maxAgents, requested.maxAgents),
      allowPreempt: allowed.allowPreempt && requested.allowPreempt,
      maxTotalSpawns: smaller(allowed.maxTotalSpawns, requested.maxTotalSpawns),
      maxDepth: smaller(allowed.maxDepth, requested.maxDepth),
    }),
  );
}

function smaller<N extends number | bigint>(a: N | undefined, b: N | undefined): N | undefined {
  if (a === undefined) return b;
  if (b === undefined) return a;
  return b < a ? b : a;
}

function checkCount(value: number | undefined, field: string, min = 0): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min)) return;
  throw badBudget(field, `must be an integer of at least ${min}`);
}

function badBudget(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_BUDGET', `${field} ${rule}.`, { field });
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
