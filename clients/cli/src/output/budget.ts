import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ExecutionBudgetSchema } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { InvalidRequestError, parseUsd } from '@writ/kernel';
import type { BudgetOptions } from './budget-options.ts';

/**
 * The caps of the options; undefined when none is set.
 * @throws InvalidRequestError INVALID_OPTION, INVALID_AMOUNT
 */
export function budgetOf({
  maxCostUsd,
  maxTokens,
  maxTurns,
}: BudgetOptions): MessageInitShape<typeof ExecutionBudgetSchema> | undefined {
  if ((maxCostUsd ?? maxTokens ?? maxTurns) === undefined) return undefined;
  return {
    ...(maxCostUsd !== undefined && { maxCostNanoUsd: parseUsd(maxCostUsd, '--max-cost-usd') }),
    ...(maxTokens !== undefined && { maxTokens: countOf(maxTokens, '--max-tokens') }),
    ...(maxTurns !== undefined && { maxTurns: countOf(maxTurns, '--max-turns') }),
  };
}

function countOf(text: string, option: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text);
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `${option} must be a whole number of at least 0, not ${JSON.stringify(text)}.`,
    { field: option },
  );
}
