import type { ExecutionBudget } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { Caps } from '../../domain/ledger/amount.ts';

/** The caps that the meter keeps of a budget. The rest of it is the supervisor's: active time. */
export function toCaps(budget: ExecutionBudget | undefined): Caps {
  return {
    ...(budget?.maxTokens === undefined ? {} : { tokens: budget.maxTokens }),
    ...(budget?.maxCostNanoUsd === undefined ? {} : { cost: budget.maxCostNanoUsd }),
    ...(budget?.maxTurns === undefined ? {} : { turns: budget.maxTurns }),
  };
}

/** Caps as the contract writes them. */
export function fromCaps({ tokens, cost, turns }: Caps) {
  return {
    ...(tokens === undefined ? {} : { maxTokens: tokens }),
    ...(cost === undefined ? {} : { maxCostNanoUsd: cost }),
    ...(turns === undefined ? {} : { maxTurns: turns }),
  };
}
