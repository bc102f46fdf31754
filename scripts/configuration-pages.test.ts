import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { loadYaml } from '@writ/config';
import { readCatalog } from '@writ/execution-meter';
import { REASONS } from '@writ/kernel';
import { loadPolicy, PolicyError } from '@writ/policy';
import { loadAgents } from '@writ/supervisor';
import { loadToolsFile } from '@writ/tool-gateway';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { REFERENCE_FILES, withExamples } from './configuration-examples.ts';
import { CONFIGURATION_FILES, keysBelow, keysWithoutExample } from './configuration-pages.ts';

const files = Object.entries(CONFIGURATION_FILES);
const EXAMPLES = ['refund-desk', 'research-team', 'news-feed', 'nightly-flow'];

/** Every file of an example, of `writ init` and of the reference, for which a schema is published. */
const YAML_FILES = globSync([
  'examples/*/*.yaml',
  'clients/cli/template/*.yaml',
  `${REFERENCE_FILES}/*.yaml`,
]).filter((file) => basename(file, '.yaml') in CONFIGURATION_FILES);

/** Path of the schemas of the package `writ` in a project created by `writ init`. */
const PACKAGED = './node_modules/writ/schemas/';

/** The schema that an editor finds for a file. */
function schemaNamedBy(file: string): string {
  const [first = ''] = readFileSync(file, 'utf8').split('\n');
  const named = /^# yaml-language-server: \$schema=(\S+)$/.exec(first)?.[1] ?? 'none';
  return named.startsWith(PACKAGED)
    ? join('docs/reference/schemas', named.slice(PACKAGED.length))
    : join(dirname(file), named);
}

describe('the configuration reference', () => {
  it.each(files)('has an example of every key of %s.yaml (PE-4)', (name, { schema }) => {
    expect(keysWithoutExample(name as keyof typeof CONFIGURATION_FILES)).toEqual([]);
    const keys = keysBelow(withExamples(name, schema));
    expect(keys.flatMap((key) => key.schema.examples ?? []).length).toBeGreaterThan(9);
  });

  it('takes its examples from files that the services accept (PE-4)', () => {
    const at = (name: string) => join(REFERENCE_FILES, `${name}.yaml`);
    const { agents, warnings } = loadAgents(at('agents'));
    expect([agents.size > 3, warnings]).toEqual([true, []]);
    expect(() => readCatalog(at('models'), { OPENAI_API_KEY: 'k' })).not.toThrow();
    expect(() => loadToolsFile(at('tools'), { DOCUMENTS_TOKEN: 't' })).not.toThrow();
    expect(() =>
      loadPolicy(readFileSync(at('policy'), 'utf8'), { file: at('policy') }),
    ).not.toThrow();
    expect(
      loadYaml(at('notifications'), { ...CONFIGURATION_FILES.notifications.schema }).value,
    ).toBeDefined();
  });

  it.each(YAML_FILES)(
    'publishes a schema for %s that editors find and that accepts the file (PE-4)',
    (file) => {
      const schema = schemaNamedBy(file);
      expect(schema).toBe(`docs/reference/schemas/${basename(file, '.yaml')}.schema.json`);
      const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
      const isValid = ajv.compile(JSON.parse(readFileSync(schema, 'utf8')));
      const content = parse(readFileSync(file, 'utf8'), { merge: true });
      isValid(content);
      expect(isValid.errors ?? []).toEqual([]);
      expect(isValid({ ...content, misspelt: 1 })).toBe(false);
    },
  );

  it.each(files)('describes every key of %s.yaml in a sentence (PE-4)', (_, { schema }) => {
    const keys = keysBelow(schema);
    expect(keys.length).toBeGreaterThan(10);
    const undescribed = keys.filter((key) => !/^[A-Z].*\.$/.test(key.schema.description ?? ''));
    expect(undescribed.map(({ path }) => path)).toEqual([]);
  });

  it.each(files)(
    'has a schema that accepts the %s.yaml of every example (PE-4)',
    (name, { schema }) => {
      const documents = EXAMPLES.map((example) => `examples/${example}/${name}.yaml`);
      // Notifications are optional; their page has an example.
      const present = documents.filter((file) => name !== 'notifications' || existsSync(file));
      for (const file of present) expect(loadYaml(file, { ...schema }).value).toBeDefined();
    },
  );

  it('lists every variable that a program reads (PE-4)', () => {
    const read = execFileSync(
      'git',
      ['grep', '-ohE', '\\bWRIT_[A-Z]+(_[A-Z]+)*\\b', '--', ...SOURCES],
      { encoding: 'utf8', maxBuffer: 2 ** 26 },
    );
    const page = readFileSync('docs/reference/settings.md', 'utf8');
    const names = [...new Set(read.split('\n').filter(Boolean))];
    expect(names.length).toBeGreaterThan(40);
    const isOther = (name: string) => name in REASONS || STREAMS.includes(name);
    expect(names.filter((name) => !page.includes(name) && !isOther(name))).toEqual([]);
  });

  it('has a policy schema whose top-level keys the loader accepts (PE-4, SV-3)', () => {
    const keys = keysBelow(CONFIGURATION_FILES.policy.schema).map(({ path }) => path);
    expect(keys).toContain('rules[].editable');
    const unknown = stringify({ policy: 'p', rules: [], nonsense: 1 });
    const problems = problemsOf(unknown);
    for (const key of keys.filter((path) => /^[a-z]+$/.test(path))) expect(problems).toContain(key);
  });
});

function problemsOf(text: string): string {
  try {
    loadPolicy(text, { file: 'policy.yaml' });
    return '';
  } catch (error) {
    if (error instanceof PolicyError) return error.message;
    throw error;
  }
}

const SOURCES = [
  'services/*/src/*.ts',
  'libs/*/src/*.ts',
  'platform/src/*.ts',
  'clients/*.ts',
  'clients/*.py',
  'clients/*.go',
  ':!*.test.ts',
  ':!libs/testing',
  ':!clients/console/test',
];

/** Streams of NATS, whose names look like variables. */
const STREAMS = ['WRIT_OBSERVED'];
