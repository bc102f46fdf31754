import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { loadYaml } from '@writ/config';
import { REASONS } from '@writ/kernel';
import { loadPolicy, PolicyError } from '@writ/policy';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { CONFIGURATION_FILES, keysBelow } from './configuration-pages.ts';

const files = Object.entries(CONFIGURATION_FILES);
const EXAMPLES = ['refund-desk', 'research-team', 'news-feed', 'nightly-flow'];

describe('the configuration reference', () => {
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

  it('has a policy schema with exactly the keys that the loader accepts (PE-4, SV-3)', () => {
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
