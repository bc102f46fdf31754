import { ToolFailure, type Tools } from '@writ/kernel';

/**
 * Creates the tools that the MCP conformance suite calls, limited to the kinds of results that the platform supports.
 */
export async function createTools(): Promise<Tools> {
  return {
    test_simple_text: async () => ({ text: 'This is a simple text response for testing.' }),
    test_error_handling: async () => {
      throw new ToolFailure('This tool intentionally returns an error for testing');
    },
    json_schema_2020_12_tool: async () => ({ ok: true }),
  };
}
