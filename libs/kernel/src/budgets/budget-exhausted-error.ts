import { type ErrorMetadata, WritError } from '../errors/errors.ts';
import { formatUsd } from './money.ts';

/** Fields of a {@link BudgetExhaustedError}. Cost is nano-USD as a bigint, decimal USD as a string. */
export interface BudgetBreach {
  /** `tokens`, `cost`, `turns`, `spawns` or another dimension of a budget. */
  readonly dimension: string;
  readonly used: number | bigint | string;
  readonly limit: number | bigint | string;
  /** Replaces the default message, for example to name the level whose cap was reached. */
  readonly message?: string;
  readonly metadata?: ErrorMetadata;
}

const DIMENSION_LABELS: Readonly<Record<string, string>> = {
  tokens: 'Token',
  cost: 'Cost',
  turns: 'Turn',
  spawns: 'Spawn',
};

/** A budget or headcount is exhausted: stop, or request a larger one (EM-2, SB-2). */
export class BudgetExhaustedError extends WritError<'resource_exhausted'> {
  readonly kind = 'resource_exhausted';
  readonly dimension: string;

  /** The default message is `Token budget exceeded: 4200 > 4000`. */
  constructor(breach: BudgetBreach, options?: ErrorOptions) {
    const show = (amount: number | bigint | string): string =>
      breach.dimension === 'cost' && typeof amount === 'bigint'
        ? formatUsd(amount)
        : String(amount);
    const used = show(breach.used);
    const limit = show(breach.limit);
    const label = DIMENSION_LABELS[breach.dimension] ?? breach.dimension;
    super(
      'BUDGET_EXHAUSTED',
      breach.message ?? `${label} budget exceeded: ${used} > ${limit}`,
      { ...breach.metadata, dimension: breach.dimension, used, limit },
      options,
    );
    this.dimension = breach.dimension;
  }
}
