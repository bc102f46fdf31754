import { ConfigError, loadYaml, type YamlInput } from '@writ/config';
import { InvalidRequestError, isWritError, TOOL_NAME_PATTERN } from '@writ/kernel';
import { type Allow, createRegistry, EVERY, type Registry } from '../domain/registry.ts';
import { compileTool, type Tool } from '../domain/tool.ts';
import { HTTP_FETCH } from './builtin/http-fetch.ts';
import { mcpName, nameAtServer } from './mcp/mcp-name.ts';
import type { OfferedTools } from './source.ts';
import { readOrigin, type SourceOrigin, type Variables } from './source-origin.ts';
import { limitsIn, missingIn, toDefinition } from './tool-entry.ts';
import { TOOLS_SCHEMA, type ToolEntry, type ToolsDocument } from './tools-schema.ts';

/** A source as tools.yaml declares it. */
export interface SourceDeclaration {
  readonly name: string;
  readonly origin: SourceOrigin;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  /** Names of the tools that are declared with this source. */
  readonly tools: readonly string[];
  /** `file:line:column` of the declaration. */
  readonly place: string;
}

/** Offered tools by source. */
type Offers = ReadonlyMap<string, OfferedTools>;

/** A registry of the usable tools, and warnings about the others. */
interface Completed {
  readonly registry: Registry;
  readonly warnings: readonly string[];
}

/** A parsed tools.yaml. */
export interface ToolsFile {
  /** Tools with a complete definition in tools.yaml, and the built-in tool if tools.yaml declares it. */
  readonly registry: Registry;
  /** Adds the tools that sources offer; tools.yaml takes precedence. */
  complete(offers: Offers): Completed;
  readonly sources: readonly SourceDeclaration[];
  readonly warnings: readonly string[];
}

const DEFAULTS = { maxInFlight: 32, maxQueued: 256 } as const;

/**
 * Reads tools.yaml: tools, sources and allowlists (TG-6). Module paths are relative to the file; the other text
 * settings of sources may refer to `variables` as `${NAME}` or `${NAME:-default}`.
 * @throws ConfigError listing every problem with its line and column
 */
export function loadToolsFile(input: YamlInput, variables: Variables): ToolsFile {
  const { value, warnings, locate } = loadYaml<ToolsDocument>(input, TOOLS_SCHEMA);
  const file = typeof input === 'string' ? input : input.file;
  const problems = new Problems(locate);
  const { tools, incomplete } = readTools(value, problems);
  checkMcpNames(value, problems);
  checkAllowlists(value, problems);
  const sources = Object.entries(value.sources).flatMap(([name, entry]) => {
    const path = ['sources', name];
    const origin = problems.collect(path, () => readOrigin(entry, file, variables));
    if (origin === undefined) return [];
    return {
      name,
      origin,
      maxInFlight: entry.max_in_flight ?? DEFAULTS.maxInFlight,
      maxQueued: entry.max_queued ?? DEFAULTS.maxQueued,
      tools: value.tools.filter((tool) => tool.source === name).map((tool) => tool.name),
      place: locate(path),
    };
  });
  if (problems.all.length > 0) throw new ConfigError(file, problems.all);
  const allow = toAllow(value);
  return {
    registry: createRegistry(tools, allow),
    complete: (offers) => complete(tools, incomplete, offers, allow),
    sources,
    warnings,
  };
}

type Path = readonly (string | number)[];

/** Collects the problems of a document with their positions. */
class Problems {
  readonly all: string[] = [];
  readonly #locate: (path: Path) => string;

  constructor(locate: (path: Path) => string) {
    this.#locate = locate;
  }

  add(path: Path, message: string): void {
    this.all.push(`${this.#locate(path)}: ${message}`);
  }

  /** Returns the result of `read`; when `read` throws, adds the error to the problems and returns undefined. */
  collect<T>(path: Path, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!isWritError(error)) throw error;
      this.add(path, error.message);
      return undefined;
    }
  }
}

/** Returns the tools with a complete definition, and the entries that need fields from their source. */
function readTools(document: ToolsDocument, problems: Problems) {
  const tools: Tool[] = [];
  const incomplete: ToolEntry[] = [];
  const names = new Set<string>();
  for (const [index, entry] of document.tools.entries()) {
    const path = ['tools', index];
    if (names.has(entry.name)) problems.add([...path, 'name'], `${entry.name} is declared twice.`);
    names.add(entry.name);
    const result = readTool(document, entry, path, problems);
    if (result === 'incomplete') incomplete.push(entry);
    else if (result !== undefined) tools.push(result);
  }
  return { tools, incomplete };
}

/**
 * Returns the tool of an entry; `incomplete` when the entry needs fields from its source; undefined when the entry is
 * invalid.
 */
function readTool(
  { sources }: ToolsDocument,
  entry: ToolEntry,
  path: Path,
  problems: Problems,
): Tool | 'incomplete' | undefined {
  const { name } = entry;
  const source = Object.hasOwn(sources, entry.source) ? sources[entry.source] : undefined;
  if (source === undefined) {
    const message = `source ${entry.source} is not declared under sources.`;
    return void problems.add([...path, 'source'], message);
  }
  const isBuiltin = source.kind === 'builtin';
  if (isBuiltin && name !== 'http_fetch') {
    const message = `built-in tool ${name} does not exist. Available tools: http_fetch.`;
    return void problems.add([...path, 'name'], message);
  }
  const isMcp = source.kind === 'mcp';
  if (isMcp && nameAtServer(entry.source, name) === undefined) {
    const message = `tools of ${entry.source} are named ${mcpName(entry.source, '<tool>')}.`;
    return void problems.add([...path, 'name'], message);
  }
  const offered = isBuiltin ? HTTP_FETCH : undefined;
  const missing = isBuiltin ? [] : missingIn(entry);
  const definition = problems.collect([...path, 'timeout'], () => toDefinition(entry, offered));
  if (isMcp && missing.length > 0) return 'incomplete';
  for (const field of missing) problems.add(path, `${path.join('.')} needs "${field}".`);
  if (definition === undefined || missing.length > 0) return undefined;
  return problems.collect([...path, 'input_schema'], () =>
    compileTool(definition, limitsIn(entry)),
  );
}

/** Rejects MCP servers whose tools could have the same names, so that no server can offer a tool of another (TG-6). */
function checkMcpNames({ sources }: ToolsDocument, problems: Problems): void {
  const servers = Object.keys(sources).filter((name) => sources[name]?.kind === 'mcp');
  for (const name of servers) {
    const other = servers.find(
      (one) => one !== name && nameAtServer(one, mcpName(name, '')) !== undefined,
    );
    if (other === undefined) continue;
    const message = `tools of ${name} could have the same names as tools of ${other}. Rename one of the sources.`;
    problems.add(['sources', name], message);
  }
}

function checkAllowlists(document: ToolsDocument, problems: Problems): void {
  const names = new Set(document.tools.map(({ name }) => name));
  for (const [list, index, tool] of allowedNames(document)) {
    if (tool === EVERY || names.has(tool) || isOffered(document, tool)) continue;
    problems.add(['allow', ...list, index], `tool ${tool} does not exist.`);
  }
}

function complete(
  described: readonly Tool[],
  incomplete: readonly ToolEntry[],
  offers: Offers,
  allow: Allow,
): Completed {
  const tools = new Map(described.map((tool) => [tool.name, tool]));
  const entries = new Map(incomplete.map((entry) => [entry.name, entry]));
  const warnings: string[] = [];
  for (const [source, offered] of offers) {
    for (const [name, offer] of Object.entries(offered)) {
      const entry = entries.get(name) ?? { name, source };
      if (entry.source !== source) {
        const owner = `tools.yaml declares it with source ${entry.source}`;
        warnings.push(`Tool ${name} of source ${source} is ignored: ${owner}.`);
        continue;
      }
      entries.delete(name);
      if (tools.has(name)) continue;
      try {
        assertToolName(name);
        tools.set(name, compileTool(toDefinition(entry, offer), limitsIn(entry)));
      } catch (error) {
        if (!isWritError(error)) throw error;
        warnings.push(`Tool ${name} of source ${source} is ignored: ${error.message}`);
      }
    }
  }
  for (const { name, source } of entries.values()) {
    warnings.push(`Tool ${name} is ignored: source ${source} does not offer it.`);
  }
  return { registry: createRegistry([...tools.values()], allow), warnings };
}

function assertToolName(name: string): void {
  if (TOOL_NAME_PATTERN.test(name)) return;
  throw new InvalidRequestError(
    'INVALID_TOOL_NAME',
    'The name must have 1 to 64 letters, digits, underscores and hyphens.',
  );
}

/** Whether an MCP server may offer a tool with this name. */
function isOffered({ sources }: ToolsDocument, tool: string): boolean {
  return Object.entries(sources).some(
    ([source, { kind }]) => kind === 'mcp' && nameAtServer(source, tool) !== undefined,
  );
}

function allowedNames({ allow = {} }: ToolsDocument): [string[], number, string][] {
  return Object.entries(allow).flatMap(([kind, lists]) =>
    Object.entries(lists).flatMap(([who, tools]) =>
      tools.map((tool, index): [string[], number, string] => [[kind, who], index, tool]),
    ),
  );
}

function toAllow({ allow = {} }: ToolsDocument): Allow {
  const { agents, tenants } = allow;
  return { ...(agents && { agents }), ...(tenants && { tenants }) };
}
