import { ToolFailure, type Tools } from '@writ/kernel';

/** The tools that the conformance suite of MCP calls, as far as the platform has their kind of result. */
export async function createTools(): Promise<Tools> {
  return {
    test_simple_text: async () => ({ text: 'This is a simple text response for testing.' }),
    test_error_handling: async () => {
      throw new ToolFailure('This tool intentionally returns an error for testing');
    },
    json_schema_2020_12_tool: async () => ({ ok: true }),
  };
}
