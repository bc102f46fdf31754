import { Environment } from '@marcbachmann/cel-js';
import { Priority, trimWhiteSpace } from '@writ/kernel';
import { centsDown, centsUp, usdFromCents } from './cents.ts';

/** Every variable that some expression may read. */
const VARIABLES = [
  'action',
  'args',
  'facts',
  'limits',
  'agent',
  'supervision',
  'budget',
  'priority',
  'tenant',
  'result',
  'counted',
] as const;

/** The functions and constants that all policy expressions share; scopes are cloned from it. */
export const base = createBase();

/**
 * Evaluates what was checked. Variables are dynamic here, so that an argument of the wrong type
 * reaches the rule, which can name it, and does not fail before.
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
    .registerFunction('blank(dyn): bool', isBlank);
  for (const [name, weight] of Object.entries(Priority)) {
    environment.registerConstant(name, 'int', BigInt(weight));
  }
  return environment;
}

/** Whether an argument says nothing: null, or a text of white space. */
export function isBlank(value: unknown): boolean {
  return value === null || (typeof value === 'string' && trimWhiteSpace(value) === '');
}
