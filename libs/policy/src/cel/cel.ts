import { Environment } from '@marcbachmann/cel-js';
import { Priority, trimWhiteSpace } from '@writ/kernel';
import { centsDown, centsUp, usdFromCents } from './cents.ts';
import { LINEAR_MATCHES, matchesPattern } from './linear-patterns.ts';

/** All variables that expressions can read. */
const VARIABLES = [
  'action',
  'args',
  'facts',
  'limits',
  'agent',
  'supervision',
  'budget',
  'run',
  'priority',
  'tenant',
  'result',
  'counted',
] as const;

/**
 * Environment with the functions and constants of all policy expressions; scopes are clones of it.
 */
export const base = createBase();

/**
 * Environment that evaluates checked expressions. The variables are dynamic, so that an argument of the wrong type
 * fails the evaluation of the rule, and the reason of the decision names the rule.
 */
export const runtime = VARIABLES.reduce(
  (environment, name) => environment.registerVariable(name, 'dyn'),
  base.clone(),
);

function createBase(): Environment {
  const environment = new Environment({ limits: { maxAstNodes: 2_000, maxDepth: 64 } })
    .registerFunction('cents(double): int', (usd: number) => centsUp(usd))
    .registerFunction('cents(int): int', (usd: bigint) => usd * 100n)
    .registerFunction('cents_down(double): int', (usd: number) => centsDown(usd))
    .registerFunction('cents_down(int): int', (usd: bigint) => usd * 100n)
    .registerFunction('usd(int): double', (cents: bigint) => usdFromCents(cents))
    .registerFunction('is_number(dyn): bool', (value: unknown) => typeof value === 'number')
    .registerFunction('is_text(dyn): bool', (value: unknown) => typeof value === 'string')
    .registerFunction('blank(dyn): bool', isBlank)
    .registerFunction(`string.${LINEAR_MATCHES}(string): bool`, matchesPattern);
  for (const [name, weight] of Object.entries(Priority)) {
    environment.registerConstant(name, 'int', BigInt(weight));
  }
  return environment;
}

/** Whether an argument is null or contains only white space. */
export function isBlank(value: unknown): boolean {
  return value === null || (typeof value === 'string' && trimWhiteSpace(value) === '');
}
