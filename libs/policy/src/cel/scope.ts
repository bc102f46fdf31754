import type { Environment, ObjectSchema } from '@marcbachmann/cel-js';
import { BUDGET_FIELDS, EFFECT_FIELDS, type Fact } from '../types.ts';
import type { ArgumentTypes } from './argument-types.ts';
import { base } from './cel.ts';

/** The typed variables that one kind of expression reads. */
export interface Scope {
  readonly environment: Environment;
  /** Known fields of each variable. */
  readonly names: Readonly<Record<string, readonly string[]>>;
}

/** Facts and limits of the document as CEL types. */
export interface Declarations {
  readonly facts: ObjectSchema;
  readonly limits: ObjectSchema;
}

const ACTION = {
  kind: 'string',
  tool: 'string',
  agent: 'string',
  task: 'string',
  answer: 'string',
  definition_digest: 'string',
};
const AGENT = { name: 'string', instance: 'string', depth: 'int' };
const SUPERVISION = {
  run_id: 'string',
  session_id: 'string',
  parent: 'string',
  depth: 'int',
  is_root: 'bool',
  priority: 'int',
  retention: 'string',
};
const RUN = Object.fromEntries(EFFECT_FIELDS.map((name) => [name, 'int']));
const BUDGET = Object.fromEntries(BUDGET_FIELDS.map((name) => [name, 'int']));

/** Scope of `when` and `set` in rules. Arguments of unknown type are dynamic. */
export function ruleScope(declared: Declarations, args: ArgumentTypes | undefined): Scope {
  return build({
    action: ACTION,
    args: args ?? 'dyn',
    facts: declared.facts,
    limits: declared.limits,
    agent: AGENT,
    supervision: SUPERVISION,
    budget: BUDGET,
    run: RUN,
    priority: 'int',
    tenant: 'string',
  });
}

/** Scope of `count` in facts: the action under approval. */
export function countScope(declared: Declarations, args: ArgumentTypes | undefined): Scope {
  return build({ args: args ?? 'dyn', limits: declared.limits });
}

/**
 * Scope of `when`, `add` and `set` in facts: the receipt, and for a cap the count of the action.
 */
export function receiptScope(declared: Declarations, kind: Fact['kind']): Scope {
  const variables = { result: 'dyn', limits: declared.limits };
  return build(kind === 'cap' ? { ...variables, counted: 'int' } : variables);
}

/** Scope of `ok_when` in outcomes: the fields of the receipt. */
export function outcomeScope(declared: Declarations): Scope {
  return build({ result: 'dyn', limits: declared.limits });
}

function build(variables: Readonly<Record<string, string | ObjectSchema>>): Scope {
  const environment = base.clone();
  const names: Record<string, readonly string[]> = {};
  for (const [name, type] of Object.entries(variables)) {
    if (typeof type === 'string') {
      environment.registerVariable(name, type);
    } else {
      environment.registerVariable(name, { schema: type });
      names[name] = Object.keys(type);
    }
  }
  return { environment, names };
}
