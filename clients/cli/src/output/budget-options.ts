import type { Command } from 'commander';

/** Caps on a command line. */
export interface BudgetOptions {
  readonly maxCostUsd?: string;
  readonly maxTokens?: string;
  readonly maxTurns?: string;
}

/** Adds the options of {@link BudgetOptions}. */
export function withBudget(command: Command): Command {
  return command
    .option('--max-cost-usd <usd>', 'cap of the cost, such as 0.50')
    .option('--max-tokens <count>', 'cap of the tokens')
    .option('--max-turns <count>', 'cap of the model calls');
}
