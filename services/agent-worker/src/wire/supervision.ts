import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type ExecutionBudget as BudgetMessage,
  HistoryRetention as RetentionMessage,
  type Supervision as SupervisionMessage,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { weightOf } from '@writ/identity';
import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  HistoryRetention,
  InvalidRequestError,
  Priority,
  Supervision,
} from '@writ/kernel';

/**
 * Converts an agent's supervision.
 * @throws InvalidRequestError naming the field
 */
export function supervisionFrom(message: SupervisionMessage): Supervision {
  const { root, parent } = message;
  if (root === undefined) {
    throw new InvalidRequestError('INVALID_SUPERVISION', 'supervision.root is required.', {
      field: 'supervision.root',
    });
  }
  const isRoot = parent === undefined;
  return Supervision.restore({
    runId: message.runId,
    sessionId: message.sessionId,
    rootId: { name: root.name, instance: root.instance },
    ...(parent && { parentId: { name: parent.name, instance: parent.instance } }),
    depth: message.depth,
    spawnBudget: createSpawnBudget(message.spawnBudget, 'supervision.spawn_budget'),
    executionBudget: budgetFrom(message.executionBudget),
    retention:
      retentionFrom(message.retention) ??
      (isRoot ? HistoryRetention.PERMANENT : HistoryRetention.RUN),
    priority: weightOf(message.priority) ?? Priority.NORMAL,
  });
}

/** Converts a retention; undefined for UNSPECIFIED. */
export function retentionFrom(retention: RetentionMessage): HistoryRetention | undefined {
  switch (retention) {
    case RetentionMessage.NONE:
      return HistoryRetention.NONE;
    case RetentionMessage.RUN:
      return HistoryRetention.RUN;
    case RetentionMessage.PERMANENT:
      return HistoryRetention.PERMANENT;
    default:
      return undefined;
  }
}

function budgetFrom(budget: BudgetMessage | undefined): ExecutionBudget {
  const { maxTokens, maxCostNanoUsd, maxTurns, deadline, maxActive } = budget ?? {};
  return createExecutionBudget(
    {
      maxTokens: maxTokens === undefined ? undefined : Number(maxTokens),
      maxCostNanoUsd,
      maxTurns: maxTurns === undefined ? undefined : Number(maxTurns),
      deadlineMs: deadline && Math.round(durationMs(deadline)),
      maxActiveMs: maxActive && Math.round(durationMs(maxActive)),
    },
    'supervision.execution_budget',
  );
}
