import {
  type KyselyPlugin,
  OperationNodeTransformer,
  type PrimitiveValueListNode,
  ValueListNode,
  ValueNode,
} from 'kysely';

class LiteralConstants extends OperationNodeTransformer {
  protected override transformPrimitiveValueList(
    node: PrimitiveValueListNode,
  ): PrimitiveValueListNode {
    // A primitive value list compiles to parameters only. A `ValueListNode`, which can contain literals, is valid in
    // the same places.
    return ValueListNode.create(node.values.map(valueNode)) as unknown as PrimitiveValueListNode;
  }

  protected override transformValue(node: ValueNode): ValueNode {
    return node.immediate === true ? node : valueNode(node.value);
  }
}

function valueNode(value: unknown): ValueNode {
  return typeof value === 'string' ? ValueNode.createImmediate(value) : ValueNode.create(value);
}

const transformer = new LiteralConstants();

/**
 * Compiles the string constants of a query as literals instead of parameters. If the column of a partial index is
 * compared with a parameter, SQLite recompiles the statement at every execution, and PostgreSQL cannot use the index in
 * a generic plan.
 */
export const literalConstants: KyselyPlugin = {
  transformQuery: ({ node, queryId }) => transformer.transformNode(node, queryId),
  transformResult: async ({ result }) => result,
};
