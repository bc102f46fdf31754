import { dirname, resolve } from 'node:path';
import { ConfigError, loadYaml, parseDuration, type YamlInput } from '@writ/config';
import { isWritError, type JsonObject } from '@writ/kernel';
import { type Allow, createRegistry, EVERY, type Registry } from '../domain/registry.ts';
import { compileTool, type Tool, type ToolDefinition } from '../domain/tool.ts';
import {
  type SourceEntry,
  TOOLS_SCHEMA,
  type ToolEntry,
  type ToolsDocument,
} from './tools-schema.ts';
import { substitute, type Variables } from './variables.ts';

/** Where tools come from, as tools.yaml declares it. */
export interface SourceDeclaration {
  readonly name: string;
  readonly origin:
    | { readonly kind: 'local' /** Absolute. */; readonly module: string }
    | { readonly kind: 'provider' /** `host:port`. */; readonly address: string };
  /** Most calls at a time, and most that may wait for their turn. */
  readonly maxInFlight: number;
  readonly maxQueued: number;
  /** Names of the tools that are declared to come from it. */
  readonly tools: readonly string[];
  /** `file:line:column` of the declaration. */
  readonly place: string;
}

/** What tools.yaml says. */
export interface ToolsFile {
  readonly registry: Registry;
  readonly sources: readonly SourceDeclaration[];
  readonly warnings: readonly string[];
}

const DEFAULTS = {
  timeoutMs: 30_000,
  maxOutputBytes: 65_536,
  maxCallsPerAgent: 2,
  maxRepeats: 1,
  maxInFlight: 32,
  maxQueued: 256,
} as const;

/** Longest time limit of a tool. */
const MAX_TIMEOUT_MS = 3_600_000;

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
  for (const [index, entry] of value.tools.entries()) {
    const path = ['tools', index];
    if (names.has(entry.name))
      problems.push(`${locate([...path, 'name'])}: ${entry.name} is declared twice.`);
    names.add(entry.name);
    if (!Object.hasOwn(value.sources, entry.source)) {
      problems.push(
        `${locate([...path, 'source'])}: there is no source ${entry.source} under sources.`,
      );
    }
    const timeoutMs = attempt([...path, 'timeout'], () => readTimeout(entry));
    const definition = toDefinition(entry, timeoutMs ?? DEFAULTS.timeoutMs);
    const tool = attempt([...path, 'input_schema'], () => compileTool(definition));
    if (tool !== undefined) tools.push(tool);
  }
  for (const [list, index, tool] of allowedNames(value)) {
    if (tool === EVERY || names.has(tool)) continue;
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
  return { registry: createRegistry(tools, toAllow(value)), sources, warnings };
}

function toDefinition(entry: ToolEntry, timeoutMs: number): ToolDefinition {
  return {
    name: entry.name,
    description: entry.description.trim(),
    inputSchema: entry.input_schema as JsonObject,
    sideEffect: entry.side_effect,
    timeoutMs,
    maxOutputBytes: entry.max_output_bytes ?? DEFAULTS.maxOutputBytes,
    maxCallsPerAgent: entry.max_calls_per_agent ?? DEFAULTS.maxCallsPerAgent,
    maxRepeats: entry.max_repeats ?? DEFAULTS.maxRepeats,
    risk: entry.risk,
    source: entry.source,
  };
}

function readTimeout({ timeout }: ToolEntry): number {
  if (timeout === undefined) return DEFAULTS.timeoutMs;
  const timeoutMs = parseDuration(timeout, 'timeout');
  if (timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new ConfigError('timeout', ['timeout must be from 1ms to 1h.']);
}

function readOrigin(
  entry: SourceEntry,
  file: string,
  variables: Variables,
): SourceDeclaration['origin'] {
  if (entry.kind === 'local') {
    return { kind: 'local', module: resolve(dirname(file), entry.module) };
  }
  const filled = substitute(entry.address, variables);
  if ('missing' in filled) {
    throw new ConfigError('address', [`address refers to ${filled.missing}, which is not set.`]);
  }
  if (/^[^\s:]+:\d{1,5}$/.test(filled.text)) return { kind: 'provider', address: filled.text };
  throw new ConfigError('address', ['address must be host:port, such as 127.0.0.1:50061.']);
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
