import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, durationMs } from '@bufbuild/protobuf/wkt';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import {
  type ExecutionBudget as BudgetMessage,
  ExecutionBudgetSchema,
  type SpawnBudget as SpawnBudgetMessage,
  type SpawnBudgetSchema,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  InvalidRequestError,
  type SpawnBudget,
} from '@writ/kernel';
import { messageOf } from '@writ/rpc';

/** Converts an execution budget. */
export function budgetMessage(
  budget: ExecutionBudget,
): MessageInitShape<typeof ExecutionBudgetSchema> {
  return messageOf(ExecutionBudgetSchema, budget);
}

/**
 * Reads an execution budget; omitted fields are unlimited.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function budgetFrom(message: BudgetMessage | undefined, path: string): ExecutionBudget {
  return createExecutionBudget(
    {
      maxTokens: optionalNumber(message?.maxTokens),
      maxCostNanoUsd: message?.maxCostNanoUsd,
      maxTurns: optionalNumber(message?.maxTurns),
      deadlineMs: milliseconds(message?.deadline, `${path}.deadline`),
      maxActiveMs: milliseconds(message?.maxActive, `${path}.max_active`),
    },
    path,
  );
}

/** Converts a spawn budget. */
export function spawnBudgetMessage(
  budget: SpawnBudget,
): MessageInitShape<typeof SpawnBudgetSchema> {
  return { ...budget };
}

/**
 * Reads a spawn budget; omitted fields take the values of `own`, the budget of the manifest.
 * @throws InvalidRequestError INVALID_BUDGET naming the field below `path`
 */
export function spawnBudgetFrom(
  message: SpawnBudgetMessage | undefined,
  own: SpawnBudget,
  path: string,
): SpawnBudget {
  return createSpawnBudget(
    {
      maxAgents: message?.maxAgents ?? own.maxAgents,
      allowPreempt: message?.allowPreempt ?? own.allowPreempt,
      maxTotalSpawns: message?.maxTotalSpawns ?? own.maxTotalSpawns,
      maxDepth: message?.maxDepth ?? own.maxDepth,
    },
    path,
  );
}

function optionalNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

function milliseconds(duration: Duration | undefined, field: string): number | undefined {
  if (duration === undefined) return undefined;
  const ms = Math.round(durationMs(duration));
  if (ms >= 0) return ms;
  throw new InvalidRequestError('INVALID_BUDGET', `${field} must not be negative.`, { field });
}

const LEVEL_NAMES: Readonly<Partial<Record<BudgetLevel, string>>> = {
  [BudgetLevel.RUN]: 'run',
  [BudgetLevel.SESSION]: 'session',
  [BudgetLevel.TENANT_DAY]: 'tenant_day',
  [BudgetLevel.TENANT_MONTH]: 'tenant_month',
};

/** Returns the name of a level whose caps can be set, as used in audit records; undefined for other levels. */
export function levelName(level: BudgetLevel): string | undefined {
  return LEVEL_NAMES[level];
}
