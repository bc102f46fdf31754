const SEPARATOR = '__';

/** What a tool of an MCP server is called here: `<source>__<tool>`, so that no two are the same. */
export function mcpName(source: string, tool: string): string {
  return `${source}${SEPARATOR}${tool}`;
}

/** What the server of `source` calls a tool of this name; undefined for a tool of another source. */
export function nameAtServer(source: string, name: string): string | undefined {
  const prefix = mcpName(source, '');
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}
