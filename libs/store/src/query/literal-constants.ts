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
    // A list of primitive values has parameters only; the other kind is compiled in the same places.
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
 * Compiles the strings of a query as literals. SQLite compiles a statement again at each execution if a parameter is compared
 * with the column of a partial index, and PostgreSQL can use such an index for a literal only, once it has a generic plan.
 */
export const literalConstants: KyselyPlugin = {
  transformQuery: ({ node, queryId }) => transformer.transformNode(node, queryId),
  transformResult: async ({ result }) => result,
};
