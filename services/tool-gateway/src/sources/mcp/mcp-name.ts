const SEPARATOR = '__';

/**
 * The unique name of an MCP server's tool: `<source>__<tool>`. This file is separate from the MCP source, because
 * tools.yaml is also read without loading the MCP client.
 */
export function mcpName(source: string, tool: string): string {
  return `${source}${SEPARATOR}${tool}`;
}

/** The server's own name of a tool; undefined for a tool of another source. */
export function nameAtServer(source: string, name: string): string | undefined {
  const prefix = mcpName(source, '');
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}
