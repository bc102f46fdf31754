import { ConfigError, loadYaml, type YamlInput } from '@writ/config';
import { InvalidRequestError, isWritError, TOOL_NAME_PATTERN } from '@writ/kernel';
import { type Allow, createRegistry, EVERY, type Registry } from '../domain/registry.ts';
import { compileTool, type Tool } from '../domain/tool.ts';
import { BUILTIN_TOOLS } from './builtin/builtin-tools.ts';
import { mcpName, nameAtServer } from './mcp/mcp-name.ts';
import type { Offers } from './offered-tool.ts';
import { readOrigin, type SourceOrigin } from './source-origin.ts';
import { missingIn, toDefinition } from './tool-entry.ts';
import { TOOLS_SCHEMA, type ToolEntry, type ToolsDocument } from './tools-schema.ts';
import type { Variables } from './variables.ts';

/** Where tools come from, as tools.yaml declares it. */
export interface SourceDeclaration {
  readonly name: string;
  readonly origin: SourceOrigin;
  /** Most calls at a time, and most that may wait for their turn. */
  readonly maxInFlight: number;
  readonly maxQueued: number;
  /** Names of the tools that are declared to come from it. */
  readonly tools: readonly string[];
  /** `file:line:column` of the declaration. */
  readonly place: string;
}

/** A registry with everything in it that can be used. */
interface Completed {
  readonly registry: Registry;
  readonly warnings: readonly string[];
}

/** What tools.yaml says. */
export interface ToolsFile {
  /** What is described in full without asking a source. */
  readonly registry: Registry;
  /** The registry with what sources say of their tools; tools.yaml has the last word. */
  complete(offers: Offers): Completed;
  readonly sources: readonly SourceDeclaration[];
  readonly warnings: readonly string[];
}

const DEFAULTS = { maxInFlight: 32, maxQueued: 256 } as const;

/**
 * Reads tools.yaml: tools, sources and allowlists (TG-6). Modules are found from the file's folder;
 * an address may refer to `variables` as `${NAME}` or `${NAME:-default}`.
 * @throws ConfigError listing every problem with its line and column
 */
export function loadToolsFile(input: YamlInput, variables: Variables): ToolsFile {
  const { value, warnings, locate } = loadYaml<ToolsDocument>(input, TOOLS_SCHEMA);
  const file = typeof input === 'string' ? input : input.file;
  const problems: string[] = [];
  const attempt = <T>(path: readonly (string | number)[], work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      if (!isWritError(error)) throw error;
      problems.push(`${locate(path)}: ${error.message}`);
      return undefined;
    }
  };

  const tools: Tool[] = [];
  const names = new Set<string>();
  /** Entries that leave something to what their source says. */
  const open: ToolEntry[] = [];
  for (const [index, entry] of value.tools.entries()) {
    const path = ['tools', index];
    if (names.has(entry.name))
      problems.push(`${locate([...path, 'name'])}: ${entry.name} is declared twice.`);
    names.add(entry.name);
    const source = Object.hasOwn(value.sources, entry.source)
      ? value.sources[entry.source]
      : undefined;
    if (source === undefined) {
      problems.push(
        `${locate([...path, 'source'])}: there is no source ${entry.source} under sources.`,
      );
      continue;
    }
    const offered = source.kind === 'builtin' ? builtin(entry.name) : undefined;
    if (source.kind === 'builtin' && offered === undefined) {
      const names = Object.keys(BUILTIN_TOOLS).join(', ');
      problems.push(
        `${locate([...path, 'name'])}: there is no built-in ${entry.name}; there are ${names}.`,
      );
      continue;
    }
    const isMcp = source.kind === 'mcp';
    if (isMcp && nameAtServer(entry.source, entry.name) === undefined) {
      problems.push(
        `${locate([...path, 'name'])}: tools of ${entry.source} are named ${mcpName(entry.source, '<tool>')}.`,
      );
      continue;
    }
    const missing = offered === undefined ? missingIn(entry) : [];
    if (isMcp && missing.length > 0) {
      attempt([...path, 'timeout'], () => toDefinition(entry));
      open.push(entry);
      continue;
    }
    problems.push(...missing.map((name) => `${locate(path)}: tools.${index} needs "${name}".`));
    const definition = attempt([...path, 'timeout'], () => toDefinition(entry, offered));
    if (definition === undefined || missing.length > 0) continue;
    const tool = attempt([...path, 'input_schema'], () => compileTool(definition));
    if (tool !== undefined) tools.push(tool);
  }
  for (const [list, index, tool] of allowedNames(value)) {
    if (tool === EVERY || names.has(tool) || isOffered(value, tool)) continue;
    problems.push(`${locate(['allow', ...list, index])}: there is no tool ${tool}.`);
  }
  const sources = Object.entries(value.sources).flatMap(([name, entry]) => {
    const path = ['sources', name];
    const origin = attempt(path, () => readOrigin(entry, file, variables));
    return origin === undefined
      ? []
      : [
          {
            name,
            origin,
            maxInFlight: entry.max_in_flight ?? DEFAULTS.maxInFlight,
            maxQueued: entry.max_queued ?? DEFAULTS.maxQueued,
            tools: value.tools.filter((tool) => tool.source === name).map((tool) => tool.name),
            place: locate(path),
          },
        ];
  });
  if (problems.length > 0) throw new ConfigError(file, problems);
  const allow = toAllow(value);
  return {
    registry: createRegistry(tools, allow),
    complete: (offers) => complete(tools, open, offers, allow),
    sources,
    warnings,
  };
}

function complete(
  described: readonly Tool[],
  open: readonly ToolEntry[],
  offers: Offers,
  allow: Allow,
): Completed {
  const tools = new Map(described.map((tool) => [tool.name, tool]));
  const entries = new Map(open.map((entry) => [entry.name, entry]));
  const warnings: string[] = [];
  for (const [source, offered] of offers) {
    for (const [name, offer] of Object.entries(offered)) {
      const entry = entries.get(name) ?? { name, source };
      entries.delete(name);
      if (tools.has(name)) continue;
      try {
        assertToolName(name);
        tools.set(name, compileTool(toDefinition(entry, offer)));
      } catch (error) {
        if (!isWritError(error)) throw error;
        warnings.push(`The tool ${name} of the source ${source} is left out: ${error.message}`);
      }
    }
  }
  for (const { name, source } of entries.values()) {
    warnings.push(`The tool ${name} is left out: the source ${source} does not describe it.`);
  }
  return { registry: createRegistry([...tools.values()], allow), warnings };
}

function assertToolName(name: string): void {
  if (TOOL_NAME_PATTERN.test(name)) return;
  throw new InvalidRequestError(
    'INVALID_TOOL_NAME',
    'It must have 1 to 64 letters, digits, _ and -.',
  );
}

/** Whether an MCP server may offer a tool of this name once it is asked. */
function isOffered({ sources }: ToolsDocument, tool: string): boolean {
  return Object.entries(sources).some(
    ([source, { kind }]) => kind === 'mcp' && nameAtServer(source, tool) !== undefined,
  );
}

function builtin(name: string) {
  return Object.hasOwn(BUILTIN_TOOLS, name) ? BUILTIN_TOOLS[name] : undefined;
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
