import type { ASTNode } from '@marcbachmann/cel-js';
import { childrenOf } from './child-nodes.ts';
import { type Cost, costOf, spendOnMembers } from './operation-costs.ts';
import { spend } from './pass-limit.ts';

/** Creating an error that the expression ignores takes as long as this number of passes. */
const PASSES_PER_ERROR = 100;

/**
 * Makes every operation of an expression count its passes when its operands are known: an expression can compute larger
 * lists and strings than its context contains. Replaces the properties `handle` and `evaluate` of the nodes; cel-js
 * sets these properties when it evaluates the expression for the first time.
 */
export function meterPasses(node: ASTNode): void {
  const loop = loopOf(node);
  if (loop !== undefined) {
    meterOperation(loop, spendOnMembers, false);
    meterErrors(loop.args.step);
  }
  const cost = costOf(node);
  if (cost !== undefined) meterOperation(node, cost, node.op === 'call' || node.op === 'rcall');
  const children = childrenOf(node.args);
  if (node.op === '||' || node.op === '&&') children.forEach(meterErrors);
  children.forEach(meterPasses);
}

/** Counts passes before an operation; its operands are either a list or the first two parameters of `handle`. */
function meterOperation(node: object, cost: Cost, isCall: boolean): void {
  replace(node, 'handle', (handle, parameters) => {
    const [first, second] = parameters;
    cost(isCall && Array.isArray(first) ? first : [first, second]);
    return handle(...parameters);
  });
}

/**
 * Counts passes for each error of an operand whose errors can be ignored. Once the pass limit is exceeded, the operand
 * is not evaluated, because creating errors takes time, which the limit restricts.
 */
function meterErrors(node: object): void {
  replace(node, 'evaluate', (evaluate, parameters) => {
    spend(0);
    try {
      return evaluate.apply(node, parameters);
    } catch (error) {
      spend(PASSES_PER_ERROR);
      throw error;
    }
  });
}

type Method = (...parameters: unknown[]) => unknown;

/** Replaces a method of a node, and every method that is assigned to the same property later. */
function replace(
  node: object,
  name: 'handle' | 'evaluate',
  metered: (method: Method, parameters: unknown[]) => unknown,
): void {
  let method: Method = Reflect.get(node, name);
  const call: Method = (...parameters) => metered(method, parameters);
  Object.defineProperty(node, name, {
    get: () => call,
    set: (assigned: Method) => {
      method = assigned;
    },
  });
}

/** Returns the node that evaluates the loop of a macro. */
function loopOf(node: ASTNode): { readonly args: { readonly step: object } } | undefined {
  const { alternate } = Reflect.get(node, 'meta');
  return alternate?.op === 'comprehension' ? alternate : undefined;
}
