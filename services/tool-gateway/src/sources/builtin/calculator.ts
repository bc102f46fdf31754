import { ToolFailure } from '@writ/kernel';
import type { BuiltinTool } from './builtin-tool.ts';
import { ExpressionError, evaluate } from './expression.ts';

/** Evaluates an arithmetic expression. */
export const calculator: BuiltinTool = {
  description:
    'Works out an arithmetic expression with + - * / % ^, parentheses, pi, e, and the functions ' +
    'abs, ceil, exp, floor, ln, log10, max, min, round, sqrt. Example: round(1200 * 1.035 ^ 7).',
  inputSchema: {
    type: 'object',
    properties: { expression: { type: 'string', maxLength: 1_000 } },
    required: ['expression'],
  },
  sideEffect: 'read_only',
  risk: 0,
  timeoutMs: 1_000,
  maxCallsPerAgent: 50,
  create: () => async (args) => {
    try {
      return { result: evaluate(String(args.expression)) };
    } catch (error) {
      if (error instanceof ExpressionError) throw new ToolFailure(error.message);
      throw error;
    }
  },
};
