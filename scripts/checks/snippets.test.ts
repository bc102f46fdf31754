import { randomBytes } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadPolicy, parsePolicyTable, runPolicyTable } from '@writ/policy';
import { METRICS, type MetricKey, prometheusName } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { checkScripts } from '../../libs/simulator/src/load-scripts.ts';
import type { Script } from '../../libs/simulator/src/script.ts';
import { readCatalog } from '../../services/execution-meter/src/providers/catalog/read-catalog.ts';
import { loadAgents } from '../../services/supervisor/src/app/definitions/agents-file.ts';
import { loadNotifications } from '../../services/supervisor/src/app/notify/notifications-file.ts';
import { loadToolsFile } from '../../services/tool-gateway/src/sources/tools-file.ts';
import { examplesIn } from './examples.ts';
import {
  allSnippets,
  EXEMPT,
  exemptionOf,
  LANGUAGES,
  type Snippet,
  snippetsIn,
} from './snippets.ts';

const EXAMPLE = 'examples/refund-desk';
const snippets = allSnippets();
const ofLanguage = (language: string): (readonly [string, Snippet])[] =>
  snippets
    .filter((each) => each.language === language && exemptionOf(each) === undefined)
    .map((each) => [`${each.page}:${each.line}`, each]);

describe('the blocks of README.md and docs/', () => {
  it('name a language that a test runs, loads or compiles, or are exempt with a reason (PE-4)', () => {
    expect(snippets.length).toBeGreaterThan(60);
    const untested = snippets.filter(
      (each) => !LANGUAGES.includes(each.language) && exemptionOf(each) === undefined,
    );
    expect(untested.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
    const unused = EXEMPT.filter((each) => !snippets.some((one) => exemptionOf(one) === each));
    expect(unused, 'exemptions without a block').toEqual([]);
    for (const { reason } of EXEMPT) expect(reason).toMatch(/\w+ \w+ \w+/);
  });

  it('are complete modules if they are TypeScript, so that examples-processes.test.ts compiles them (PE-4)', () => {
    const blocks = ofLanguage('ts');
    expect(blocks.length).toBeGreaterThan(8);
    const fragments = blocks.filter(
      ([, { text }]) => examplesIn('docs/x.md', `\`\`\`ts\n${text}\`\`\`\n`).length === 0,
    );
    expect(fragments.map(([place]) => place)).toEqual([]);
  });

  it.each(ofLanguage('yaml'))(
    'are accepted by the reader of the configuration file they belong to: %s (PE-3, PE-4)',
    (_, { text }) => {
      expect(() => load(text)).not.toThrow();
    },
  );

  it.each(yamlOfReadmes())(
    'are accepted by the reader of their configuration file, also in READMEs of libraries and services: %s (PE-4)',
    (_, { text }) => {
      expect(() => load(text)).not.toThrow();
    },
  );

  it('are rejected when they contain an unknown key or an invalid value', () => {
    expect(() => load('rules:\n  - { id: a, decide: perhaps, reason: b }\n')).toThrow('decide');
    expect(() => load('sources: { own: { kind: shell } }\n')).toThrow('kind');
    expect(() => load('tenants: { "*": { week: {} } }\n')).toThrow('week');
    expect(() => load('colour: red\n')).toThrow('colour');
  });

  it.each(ofLanguage('json'))('are JSON: %s', (_, { text }) => {
    expect(() => JSON.parse(text)).not.toThrow();
  });

  it.each(ofLanguage('promql'))('query metrics that exist: %s', (_, { text }) => {
    const known = (Object.keys(METRICS) as MetricKey[]).map(prometheusName);
    const named = text.match(/\b(?:writ|gen_ai|rpc|nodejs)_\w+(?=[{\s[)])/g) ?? [];
    const metrics = named.filter(
      (name) => !/^(writ_(certificate|fingerprint)|gen_ai_request_model)$/.test(name),
    );
    expect(metrics.length).toBeGreaterThan(0);
    for (const name of metrics) {
      expect(
        known.some((each) => name === each || name.replace(/_(bucket|sum|count)$/, '') === each),
        name,
      ).toBe(true);
    }
  });

  it('are found in lists and with any language', () => {
    const page = 'a\n\n```sh\nls\n```\n\n1. b\n\n   ```\n   c\n   ```\n';
    expect(snippetsIn('p.md', page)).toEqual([
      { page: 'p.md', line: 4, language: 'sh', text: 'ls\n' },
      { page: 'p.md', line: 10, language: '', text: '   c\n' },
    ]);
  });
});

/** The YAML blocks of the README files below libs/ and services/. */
function yamlOfReadmes(): (readonly [string, Snippet])[] {
  const pages = globSync('{libs,services}/*/README.md');
  return pages
    .flatMap((page) => snippetsIn(page, readFileSync(page, 'utf8')))
    .filter(({ language }) => language === 'yaml')
    .map((each) => [`${each.page}:${each.line}`, each]);
}

type Entries = Readonly<Record<string, unknown>>;

/**
 * Loads a block with the reader of the configuration file that it belongs to. A part of a policy, tools or models file
 * is first merged into that file of the refund-desk example.
 */
function load(text: string): unknown {
  const value: unknown = parse(text);
  const part = Array.isArray(value) ? { rules: value } : (value as Entries);
  if ('rows' in part) return runTable(text);
  for (const [keys, read] of READERS) {
    if (Object.keys(part).every((key) => keys.includes(key))) return read(part);
  }
  throw new Error(`No file has the keys ${Object.keys(part).join(', ')}.`);
}

const READERS: readonly (readonly [keys: readonly string[], read: (part: Entries) => unknown])[] = [
  [
    ['name', 'description', 'expect', 'entries'],
    (part) => checkScripts([part as unknown as Script]),
  ],
  [
    ['policy', 'about', 'limits', 'facts', 'outcomes', 'rules', 'human'],
    (part) => loadPolicy(withFile('policy', part), { file: 'policy.yaml' }),
  ],
  [
    ['tools', 'sources', 'allow'],
    (part) =>
      loadToolsFile(
        { text: withFile('tools', part), file: `${EXAMPLE}/tools.yaml` },
        { WIKI_TOKEN: 'a-token' },
      ),
  ],
  [
    ['models', 'templates', 'tenants', 'prices', 'price_overrides'],
    (part) => readCatalog({ text: withFile('models', part), file: 'models.yaml' }, {}),
  ],
  [
    ['console_url', 'tenants', 'allowed_hosts'],
    (part) => {
      const file = join(mkdtempSync(join(tmpdir(), 'notifications-')), 'secret');
      const secret = `whsec_${randomBytes(32).toString('base64')}`;
      writeFileSync(file, secret);
      const text = stringify(part).replaceAll('/run/secrets/finance', file);
      const urls = { WRIT_SLACK_URL: 'https://chat.example.com/hook', WRIT_ON_CALL_SECRET: secret };
      return loadNotifications({ text, file: 'notifications.yaml' }, urls);
    },
  ],
  [['agents', 'extensions'], (part) => loadAgents({ text: stringify(part), file: 'agents.yaml' })],
  [
    ['context', 'middleware', 'session_budget', 'budget', 'limits', 'approval_required_risk'],
    (part) =>
      loadAgents({
        text: stringify({
          agents: [{ name: 'a', kind: 'react', model: { model: 'm' }, tools: ['search'], ...part }],
        }),
        file: 'agents.yaml',
      }),
  ],
  [
    ['amount_usd'],
    (properties) => {
      const input_schema = { type: 'object', properties };
      const about = { description: 'Pays.', side_effect: 'destructive', risk: 1 };
      const tool = { name: 'pay', source: 'own', input_schema, ...about };
      const sources = { own: { kind: 'provider', address: '127.0.0.1:50061' } };
      return loadToolsFile({ text: stringify({ tools: [tool], sources }), file: 'tools.yaml' }, {});
    },
  ],
];

/** Runs a policy test table against the policy of the refund-desk example; throws if a row fails. */
function runTable(text: string): unknown {
  const policy = loadPolicy(readFileSync(`${EXAMPLE}/policy.yaml`, 'utf8'), {
    file: 'policy.yaml',
  });
  const results = runPolicyTable(policy, parsePolicyTable(text, { file: 'table.yaml' }));
  const failed = results.filter(({ passed }) => !passed);
  if (failed.length > 0) throw new Error(JSON.stringify(failed));
  return results;
}

/**
 * Returns a file of the refund-desk example with the keys of a block merged into it: maps are merged, and list entries
 * replace entries with the same name.
 */
function withFile(name: string, part: Entries): string {
  return stringify(merged(parse(readFileSync(`${EXAMPLE}/${name}.yaml`, 'utf8')), part));
}

function merged(base: unknown, part: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(part)) {
    const names = new Set(part.map(nameOf));
    return [
      ...part,
      ...base.filter((entry) => nameOf(entry) === undefined || !names.has(nameOf(entry))),
    ];
  }
  if (!isMap(base) || !isMap(part)) return part;
  const keys = [...new Set([...Object.keys(base), ...Object.keys(part)])];
  return Object.fromEntries(
    keys.map((key) => [key, key in part ? merged(base[key], part[key]) : base[key]]),
  );
}

function nameOf(entry: unknown): unknown {
  return isMap(entry) ? (entry.id ?? entry.name) : undefined;
}

function isMap(value: unknown): value is Entries {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
