/**
 * Writes docs/reference/configuration-files.md, the JSON Schemas for editors in docs/reference/schemas, and the list of
 * variables in docs/reference/settings.md from the schemas and declarations in the code; `npm run pages` runs it.
 */
import { readFileSync } from 'node:fs';
import { readAgentProxyConfig } from '@writ/agent-proxy';
import { readAgentWorkerConfig } from '@writ/agent-worker';
import { declaredVariables } from '@writ/config';
import { CATALOG_SCHEMA, readExecutionMeterConfig } from '@writ/execution-meter';
import { CORE_SERVICES, SERVICE_NAMES } from '@writ/identity';
import { POLICY_SCHEMA } from '@writ/policy';
import { readProcessSettings } from '@writ/service';
import { readSpawnBudgetConfig } from '@writ/spawn-budget';
import { AGENTS_SCHEMA, NOTIFICATIONS_SCHEMA, readSupervisorConfig } from '@writ/supervisor';
import { readToolGatewayConfig, TOOLS_SCHEMA } from '@writ/tool-gateway';
import { stringify } from 'yaml';
import { REFERENCE_FILES, type Schema, withExamples } from './configuration-examples.ts';

/** The configuration files by name, with the setting that names each and its schema. */
export const CONFIGURATION_FILES = {
  agents: { setting: 'WRIT_AGENTS_FILE', guide: 'agents', schema: AGENTS_SCHEMA as Schema },
  models: { setting: 'WRIT_MODELS_FILE', guide: 'usage', schema: CATALOG_SCHEMA as Schema },
  notifications: {
    setting: 'WRIT_NOTIFICATIONS_FILE',
    guide: 'notifications',
    schema: NOTIFICATIONS_SCHEMA as Schema,
  },
  policy: { setting: 'WRIT_POLICY_FILE', guide: 'policy', schema: POLICY_SCHEMA as Schema },
  tools: { setting: 'WRIT_TOOLS_FILE', guide: 'tools', schema: TOOLS_SCHEMA as Schema },
} as const;

/** One key of a configuration file. */
export interface Key {
  /** Such as `agents[].model.timeout`. */
  readonly path: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Returns every key below a schema, in the order of declaration. */
export function keysBelow(schema: Schema, path = ''): Key[] {
  const keys: Key[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const key = path === '' ? name : `${path}.${name}`;
    keys.push({ path: key, schema: property, isRequired: isRequired(schema, name) });
    keys.push(...keysBelow(property, key));
  }
  if (schema.items !== undefined) keys.push(...keysBelow(schema.items, `${path}[]`));
  const { additionalProperties: each } = schema;
  if (typeof each === 'object') keys.push(...keysBelow(each, `${path}.<name>`));
  for (const one of schema.oneOf ?? []) keys.push(...keysBelow(one, `${path} (${one.title})`));
  for (const { if: when, then } of schema.allOf ?? []) {
    const [[field, value] = []] = Object.entries(when?.properties ?? {});
    if (then !== undefined && field !== undefined) {
      const options = then.properties?.options;
      keys.push(...keysBelow(options ?? {}, `${path}.options (${field}: ${value?.const})`));
    }
  }
  return keys;
}

function isRequired({ required = [] }: Schema, name: string): boolean {
  return required.includes(name);
}

function typeOf(schema: Schema): string {
  const { type, enum: values, 'x-expected': expected, minimum, maximum } = schema;
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (expected !== undefined) return expected;
  if (schema.items !== undefined) return `list of ${nested(schema.items)}`;
  if (type === 'object' && typeof schema.additionalProperties === 'object') {
    return `map of ${nested(schema.additionalProperties)}`;
  }
  const name = [type ?? 'any'].flat().join(' or ');
  if (minimum === undefined && maximum === undefined) return name;
  const least = minimum === undefined ? '' : ` from ${minimum}`;
  return `${name}${least}${maximum === undefined ? '' : ` to ${maximum}`}`;
}

function nested(schema: Schema): string {
  if (schema.oneOf !== undefined || schema.properties !== undefined) return 'objects';
  const type = typeOf(schema);
  return type === 'string' ? 'strings' : `(${type})`;
}

function defaultOf({ schema, isRequired: required }: Key): string {
  if (required) return '**required**';
  const value =
    schema['x-default'] ?? (schema.default === undefined ? '' : JSON.stringify(schema.default));
  return value;
}

/** Returns the example of a key in one line of YAML, as Markdown code; empty without an example. */
function exampleOf({ schema: { examples } }: Key): string {
  if (examples === undefined) return '';
  const [example] = examples;
  const text = stringify(example, { collectionStyle: 'flow', lineWidth: 0 }).trim();
  return `\`${text.replaceAll('|', '\\|')}\``;
}

type FileName = keyof typeof CONFIGURATION_FILES;
const FILE_NAMES = Object.keys(CONFIGURATION_FILES) as FileName[];

/** The schema of a configuration file with the examples of its reference file. */
function illustrated(name: FileName): Schema {
  return withExamples(name, CONFIGURATION_FILES[name].schema);
}

/** The keys of a file that have neither keys below them nor an example. */
export function keysWithoutExample(name: FileName): string[] {
  const keys = keysBelow(illustrated(name));
  const isBelow = (path: string, other: string) =>
    other.startsWith(path) && /^(\.|\[\]| \()/.test(other.slice(path.length));
  return keys
    .filter(({ schema }) => schema.examples === undefined)
    .filter(({ path }) => !keys.some((other) => isBelow(path, other.path)))
    .map(({ path }) => path);
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

/** The page with the keys of every configuration file. */
export function configurationPage(): string {
  const sections = FILE_NAMES.map((name) => {
    const { setting, guide } = CONFIGURATION_FILES[name];
    const rows = keysBelow(illustrated(name)).map((key) =>
      [
        `\`${key.path}\``,
        cell(typeOf(key.schema)),
        cell(defaultOf(key)),
        key.schema['x-unit'] ?? '',
        exampleOf(key),
        cell(key.schema.description ?? ''),
      ].join(' | '),
    );
    return [
      `## ${name}.yaml`,
      '',
      `The file that \`${setting}\` names ([guide](../how-to/${guide}.md), [JSON Schema](schemas/${name}.schema.json),`,
      `[example with every key](configuration/${name}.yaml)).`,
      '',
      '| key | type | default | unit | example | meaning |',
      '|---|---|---|---|---|---|',
      ...rows.map((row) => `| ${row} |`),
      '',
    ].join('\n');
  });
  return [
    '<!-- Generated by scripts/configuration-pages.ts from the schemas in the code. -->',
    '',
    '# Configuration files',
    '',
    'All files are YAML. If a file is invalid, the service does not start, and reports the file, line and column of every problem. If a',
    'changed file is invalid, the running service logs the error and keeps the previous content. An omitted limit means that there is no limit, and a limit of 0 permits nothing, unless',
    'the table says otherwise. In a path, `[]` stands for each entry of a list and `<name>` for each key of a map.',
    '',
    'Editors that use the YAML language server can complete and check a file whose first line names its schema in the package `writ`, such as',
    '`# yaml-language-server: $schema=./node_modules/writ/schemas/agents.schema.json`.',
    '',
    ...sections,
  ].join('\n');
}

/** The JSON Schema of a configuration file for editors. */
export function editorSchema(name: string, schema: Schema): string {
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `${name}.yaml`,
    ...schema,
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

const BEGIN = '<!-- the list: npm run pages -->';
const END = '<!-- end of the list -->';

/** The settings page with the list of variables generated from their declarations. */
export function withVariables(page: string): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${variableTable()}\n\n${END}${after}`;
}

function variableTable(): string {
  // The settings of the database connection are read only when a database URL is set.
  const env = Object.fromEntries(
    SERVICE_NAMES.map((name) => [
      `WRIT_${name.replaceAll('-', '_').toUpperCase()}_DATABASE_URL`,
      'postgres://writ@localhost/writ',
    ]),
  );
  const readers = {
    supervisor: readSupervisorConfig,
    'spawn-budget': readSpawnBudgetConfig,
    'execution-meter': readExecutionMeterConfig,
    'tool-gateway': readToolGatewayConfig,
    'agent-worker': readAgentWorkerConfig,
    'agent-proxy': readAgentProxyConfig,
    'every service': readProcessSettings,
  };
  const readBy = new Map<string, { readonly cells: string; readonly services: Set<string> }>();
  for (const [service, read] of Object.entries(readers)) {
    for (const { name, reference } of declaredVariables(() => read(env))) {
      const known = readBy.get(name) ?? { cells: cellsOf(reference), services: new Set<string>() };
      known.services.add(service);
      readBy.set(name, known);
    }
  }
  const rows = [...readBy]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { cells, services }]) => {
      const by = services.size >= CORE_SERVICES.length || services.has('every service');
      return `| \`${name}\` | ${cells} | ${by ? 'every service' : [...services].join(', ')} |`;
    });
  return [
    '| variable | format | default | meaning | read by |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function cellsOf(reference: {
  readonly expected: string;
  readonly about: string;
  readonly default: unknown;
  readonly isRequired: boolean;
}): string {
  const { expected, about, default: value, isRequired: required } = reference;
  const shown =
    expected.includes('duration') && typeof value === 'number' ? durationText(value) : value;
  const byDefault = shown === undefined || String(shown) === '' ? '' : `\`${String(shown)}\``;
  return [expected, required ? '**required**' : byDefault, about].map(cell).join(' | ');
}

function durationText(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const;
  const [unit, size] = units.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

/** Every generated file with its content. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map([['docs/reference/configuration-files.md', configurationPage()]]);
  for (const name of FILE_NAMES) {
    const missing = keysWithoutExample(name);
    if (missing.length > 0)
      throw new Error(`${REFERENCE_FILES}/${name}.yaml has no example of ${missing.join(', ')}.`);
    files.set(`docs/reference/schemas/${name}.schema.json`, editorSchema(name, illustrated(name)));
  }
  const settings = 'docs/reference/settings.md';
  return files.set(settings, withVariables(readFileSync(settings, 'utf8')));
}
