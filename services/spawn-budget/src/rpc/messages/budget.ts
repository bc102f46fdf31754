import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  SpawnBudget as SpawnBudgetMessage,
  SpawnBudgetSchema,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { createSpawnBudget, type SpawnBudget } from '@writ/kernel';

/**
 * The caps that a request names, with the defaults for what it leaves out (SB-1).
 * @throws InvalidRequestError INVALID_BUDGET naming the field
 */
export function budgetOf(message: SpawnBudgetMessage | undefined): SpawnBudget {
  return createSpawnBudget(message, 'budget');
}

/** The message of caps. */
export function budgetMessage(budget: SpawnBudget): MessageInitShape<typeof SpawnBudgetSchema> {
  return { ...budget };
}
