import type { ASTNode } from '@marcbachmann/cel-js';

/** Returns the AST nodes among the arguments of an AST node. */
export function childrenOf(args: unknown): readonly ASTNode[] {
  if (Array.isArray(args)) return args.flatMap((item: unknown) => childrenOf(item));
  return isNode(args) ? [args] : [];
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}
