import { BudgetExhaustedError, type ErrorMetadata, formatUsd } from '@writ/kernel';
import type { Dimension } from './amount.ts';
import type { Level } from './balance.ts';
import type { Breach } from './exceeded-cap.ts';

const LABELS: Readonly<Record<Dimension, string>> = {
  tokens: 'Token',
  cost: 'Cost',
  turns: 'Turn',
};

const LEVEL_LABELS: Readonly<Record<Level, string>> = {
  agent: '',
  run: ' (the whole run)',
  session: ' (the session)',
  tenant_day: ' (the tenant today)',
  tenant_month: ' (the tenant this month)',
};

/**
 * Returns the error for a cap that settled spending exceeds or that a reservation would exceed, such as `Token budget
 * exceeded: 4200 > 4000` (EM-2, EM-3). The message names the level, unless it is the level of the agent.
 */
export function breachError(
  { level, dimension, used, limit }: Breach,
  metadata: ErrorMetadata = {},
): BudgetExhaustedError {
  const show = (amount: bigint): string =>
    dimension === 'cost' ? formatUsd(amount) : String(amount);
  const hint =
    metadata.fits_output_tokens === undefined || metadata.fits_output_tokens === '0'
      ? ''
      : `; max_output_tokens ${metadata.fits_output_tokens} would fit`;
  return new BudgetExhaustedError({
    dimension,
    used,
    limit,
    message: `${LABELS[dimension]} budget exceeded: ${show(used)} > ${show(limit)}${LEVEL_LABELS[level]}${hint}`,
    metadata: { ...metadata, level, stop_reason: `budget_exhausted:${dimension}` },
  });
}
