import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError, type JsonSchema, loadYaml } from '../index.ts';

const SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'kind'],
  properties: {
    name: { type: 'string', minLength: 1 },
    kind: { enum: ['react', 'flow'] },
    max_steps: { type: 'integer', minimum: 1 },
    context_window: { type: 'integer', 'x-zero': 'means none; leave it out for no limit' },
    cost_limit: { type: 'string', 'x-zero': 'means nothing may be spent' },
    timeout: { type: 'string', pattern: '^\\d+s$', 'x-expected': 'a duration such as 30s' },
    limits: {
      type: 'object',
      propertyNames: { pattern: '^[a-z_]+$' },
      additionalProperties: { type: 'integer' },
    },
    steps: { type: 'array', items: { $ref: '#/$defs/step' } },
    tools: { anyOf: [{ const: 'all' }, { type: 'array', items: { type: 'string' } }] },
  },
  $defs: {
    step: {
      oneOf: [
        {
          title: 'a call',
          type: 'object',
          additionalProperties: false,
          required: ['do', 'tool'],
          properties: { do: { const: 'call' }, tool: { type: 'string' } },
        },
        {
          title: 'a group',
          type: 'object',
          additionalProperties: false,
          required: ['do', 'steps'],
          properties: {
            do: { const: 'group' },
            steps: { type: 'array', items: { $ref: '#/$defs/step' } },
          },
        },
      ],
    },
  },
};

function load(text: string) {
  return loadYaml<{ name: string }>({ text, file: 'agents.yaml' }, SCHEMA);
}

function problems(text: string): readonly string[] {
  try {
    load(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('loadYaml', () => {
  it('returns the value of a valid document, also from a file', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'writ-config-')), 'a.yaml');
    writeFileSync(file, 'name: support\nkind: flow\n');
    const loaded = loadYaml<{ name: string; kind: string }>(file, SCHEMA);
    expect(loaded.value).toEqual({ name: 'support', kind: 'flow' });
    expect(loaded.warnings).toEqual([]);
    expect(loaded.locate(['kind'])).toBe(`${file}:2:7`);
  });

  it('reports every problem with its position and the expected value (SYS-3)', () => {
    const text = [
      'name: 7',
      'knd: react',
      'max_steps: 0',
      'timeout: soon',
      'limits:',
      '  Bad: 1',
      '  good: many',
    ].join('\n');
    expect(problems(text)).toEqual([
      'agents.yaml:1:1: the document needs "kind".',
      'agents.yaml:2:1: unknown key "knd"; known keys: name, kind, max_steps, context_window, cost_limit, timeout, limits, steps, tools.',
      'agents.yaml:1:7: name must be a string, not 7.',
      'agents.yaml:3:12: max_steps must be >= 1, not 0.',
      'agents.yaml:4:10: timeout must be a duration such as 30s, not "soon".',
      'agents.yaml:6:3: "Bad" is not a valid name here; names must match ^[a-z_]+$.',
      'agents.yaml:7:9: limits.good must be a whole number, not "many".',
    ]);
  });

  it('reports only the first line that is indented with a tab (SYS-3)', () => {
    expect(problems('name: a\nlimits:\n\tx: 1\n\ty: 2\nkind: flow\n')).toEqual([
      'agents.yaml:3:1: Tabs are not allowed; indent with spaces.',
    ]);
  });

  it('reports line and column of syntax errors, duplicate keys and second documents', () => {
    expect(problems('name: a\nname: b\nkind: [react\n')).toEqual([
      expect.stringMatching(/^agents\.yaml:2:1: .*unique/),
      expect.stringMatching(/^agents\.yaml:4:1: .*flow sequence/i),
    ]);
    expect(problems('name: a\n---\nname: b\n')).toEqual([
      expect.stringMatching(/^agents\.yaml:2:1: .*multiple documents/i),
    ]);
    expect(problems('name: !secret a\nkind: flow')).toEqual([
      expect.stringMatching(/^agents\.yaml:1:7: .*tag/),
    ]);
    expect(problems('')).toEqual(['agents.yaml:1:1: the document must be a map, not empty.']);
  });

  it('rejects aliases that expand exponentially', () => {
    const lines = ['name: &a [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 0; i < 5; i += 1) {
      const above = i === 0 ? 'a' : `b${i - 1}`;
      lines.push(`k${i}: &b${i} [${Array(10).fill(`*${above}`).join(', ')}]`);
    }
    expect(problems(lines.join('\n'))).toEqual([expect.stringMatching(/alias/i)]);
  });

  it('reports only the errors of the closest alternative of a union', () => {
    const head = 'name: a\nkind: flow\n';
    expect(problems(`${head}steps:\n  - { do: call, tool: 3 }`)).toEqual([
      'agents.yaml:4:23: steps.0.tool must be a string, not 3.',
    ]);
    expect(problems(`${head}steps:\n  - { do: group, steps: [{ do: call }] }`)).toEqual([
      'agents.yaml:4:26: steps.0.steps.0 needs "tool".',
    ]);
    expect(problems(`${head}steps:\n  - { do: dance }`)).toEqual([
      'agents.yaml:4:5: steps.0 must be one of: a call; a group, not a map.',
    ]);
    expect(problems(`${head}steps: [7]\nname2: x`)).toEqual([
      expect.stringContaining('unknown key "name2"'),
      'agents.yaml:3:9: steps.0 must be one of: a call; a group, not 7.',
    ]);
    expect(problems(`${head}tools: [1, b]`)).toEqual([
      'agents.yaml:3:9: tools.0 must be a string, not 1.',
    ]);
  });

  it('warns about a zero where other configuration formats use 0 for unlimited', () => {
    const { warnings } = load('name: a\nkind: flow\ncontext_window: 0\ncost_limit: "0.00"\n');
    expect(warnings).toEqual([
      'agents.yaml:3:17: context_window is 0, which means none; leave it out for no limit.',
      'agents.yaml:4:13: cost_limit is 0, which means nothing may be spent.',
    ]);
    expect(load('name: a\nkind: flow\ncontext_window: 10\n').warnings).toEqual([]);
  });

  it('resolves aliases when it locates a value', () => {
    expect(problems('name: a\nkind: flow\nlimits: &l { x: y }\nsteps: *l\n')).toEqual([
      'agents.yaml:3:17: limits.x must be a whole number, not "y".',
      expect.stringContaining('agents.yaml:4:8: steps must be a list, not a map.'),
    ]);
  });

  it('reports why a file cannot be read', () => {
    expect(() => loadYaml('/nonexistent/a.yaml', SCHEMA)).toThrow(
      '/nonexistent/a.yaml cannot be read (ENOENT).',
    );
  });
});
