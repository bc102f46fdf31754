import type { ASTNode } from '@marcbachmann/cel-js';
import { childrenOf } from './child-nodes.ts';

/** A variable and the fields read from it, such as `result`, `refund.amount_usd`. */
export interface AccessChain {
  readonly root: string;
  readonly names: readonly string[];
  /** Offset of the chain in the expression. */
  readonly start: number;
}

/**
 * Returns every variable access in an expression, each with the longest chain of field names that
 * is known before evaluation: `a.b["c"][i].d` gives `a`, `b`, `c`.
 */
export function accessChains(node: ASTNode): readonly AccessChain[] {
  const chains: AccessChain[] = [];
  collect(node, chains);
  return chains;
}

function collect(node: ASTNode, chains: AccessChain[]): void {
  const chain = chainOf(node);
  if (chain !== undefined) {
    chains.push(chain);
    return;
  }
  for (const child of childrenOf(node.args)) collect(child, chains);
}

function chainOf(node: ASTNode): AccessChain | undefined {
  if (node.op === 'id') return { root: node.args, names: [], start: node.start };
  const step = stepOf(node);
  if (step === undefined) return undefined;
  const base = chainOf(step.base);
  return base && { ...base, names: [...base.names, step.name] };
}

/**
 * Returns the base and the field name of a field access or of an index with a constant string; undefined for any other
 * node, which ends the known chain.
 */
function stepOf(node: ASTNode): { base: ASTNode; name: string } | undefined {
  if (node.op === '.') return { base: node.args[0], name: node.args[1] };
  if (node.op !== '[]') return undefined;
  const [base, index] = node.args;
  if (index.op !== 'value' || typeof index.args !== 'string') return undefined;
  return { base, name: index.args };
}
