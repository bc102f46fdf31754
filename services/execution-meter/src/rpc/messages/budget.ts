import type { ExecutionBudget } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { Caps } from '../../domain/ledger/amount.ts';

/** Converts a budget to the caps that the meter enforces. The supervisor enforces active time. */
export function toCaps(budget: ExecutionBudget | undefined): Caps {
  return {
    ...(budget?.maxTokens === undefined ? {} : { tokens: budget.maxTokens }),
    ...(budget?.maxCostNanoUsd === undefined ? {} : { cost: budget.maxCostNanoUsd }),
    ...(budget?.maxTurns === undefined ? {} : { turns: budget.maxTurns }),
  };
}

/** Converts caps to budget message fields. */
export function fromCaps({ tokens, cost, turns }: Caps) {
  return {
    ...(tokens === undefined ? {} : { maxTokens: tokens }),
    ...(cost === undefined ? {} : { maxCostNanoUsd: cost }),
    ...(turns === undefined ? {} : { maxTurns: turns }),
  };
}
