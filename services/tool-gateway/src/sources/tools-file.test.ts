import { ConfigError } from '@writ/config';
import { describe, expect, it } from 'vitest';
import { loadToolsFile } from './tools-file.ts';

const GOOD = `
tools:
  - name: pay
    description: Pays a person.
    input_schema:
      type: object
      properties: { to: { type: string, fillable: true } }
      required: [to]
    side_effect: destructive
    timeout: 2s
    risk: 0.5
    source: bank
  - name: look
    description: Looks.
    input_schema: { type: object }
    side_effect: read_only
    max_output_bytes: 100
    max_calls_per_agent: 3
    max_repeats: 2
    risk: 0
    source: far
sources:
  bank: { kind: local, module: ./src/tools.ts }
  far: { kind: provider, address: "\${FAR:-127.0.0.1:50061}", max_in_flight: 4 }
allow:
  agents: { payer: [pay, look], "*": [look] }
`;

function load(text: string, variables = {}) {
  return loadToolsFile({ text, file: '/bank/tools.yaml' }, variables);
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

describe('loadToolsFile (TG-6)', () => {
  it('reads tools with their limits and applies defaults', () => {
    const { registry } = load(GOOD);
    expect([...registry.tools.keys()]).toEqual(['look', 'pay']);
    expect(registry.tools.get('pay')).toMatchObject({
      sideEffect: 'destructive',
      timeoutMs: 2_000,
      maxOutputBytes: 65_536,
      maxCallsPerAgent: 2,
      maxRepeats: 1,
      risk: 0.5,
    });
    expect(registry.tools.get('look')).toMatchObject({
      timeoutMs: 30_000,
      maxOutputBytes: 100,
      maxCallsPerAgent: 3,
      maxRepeats: 2,
    });
    expect(registry.allows({ tenant: 'acme', agentName: 'clerk' }, 'pay')).toBe(false);
  });

  it('resolves modules relative to the file, and addresses from variables', () => {
    expect(load(GOOD).sources.map(({ name, origin, tools }) => ({ name, origin, tools }))).toEqual([
      { name: 'bank', origin: { kind: 'local', module: '/bank/src/tools.ts' }, tools: ['pay'] },
      { name: 'far', origin: { kind: 'provider', address: '127.0.0.1:50061' }, tools: ['look'] },
    ]);
    expect(load(GOOD, { FAR: 'tools.example:7' }).sources[1]?.origin).toEqual({
      kind: 'provider',
      address: 'tools.example:7',
    });
  });

  it.each([
    [
      'a second tool of the same name',
      GOOD.replace('name: look', 'name: pay').replaceAll('look]', 'pay]'),
      '/bank/tools.yaml:13:11: pay is declared twice.',
    ],
    [
      'a source that does not exist',
      GOOD.replace('source: far', 'source: near'),
      '/bank/tools.yaml:21:13: source near is not declared under sources.',
    ],
    [
      'a schema that is not a contract',
      GOOD.replace('input_schema: { type: object }', 'input_schema: { type: array }'),
      '/bank/tools.yaml:15:19: The argument contract is unusable: type must be "object".',
    ],
    [
      'an argument with an invalid schema',
      GOOD.replace('type: string, fillable', 'type: strong, fillable'),
      '/bank/tools.yaml:6:7: The argument contract is unusable: the schema of to is not valid JSON Schema 2020-12, or has a pattern with lookaround or backreferences.',
    ],
    [
      'a schema that JSON cannot represent',
      GOOD.replace('{ type: string, fillable: true }', '{ default: .nan }'),
      '/bank/tools.yaml:6:7: The value has no JSON form: it contains a number that is not finite.',
    ],
    [
      'a timeout without a unit',
      GOOD.replace('timeout: 2s', 'timeout: "2"'),
      '/bank/tools.yaml:10:14: timeout must be a duration with a unit (ms, s, m, h or d), such as 30s or 1m30s.',
    ],
    [
      'a timeout of zero',
      GOOD.replace('timeout: 2s', 'timeout: 0s'),
      '/bank/tools.yaml:10:14: timeout must be from 1ms to 1h.',
    ],
    [
      'no side effect class',
      GOOD.replace('    side_effect: destructive\n', ''),
      '/bank/tools.yaml:3:5: tools.0 needs "side_effect".',
    ],
    [
      'an unknown kind of source',
      GOOD.replace('kind: local', 'kind: remote'),
      /^\/bank\/tools\.yaml:23:9: sources\.bank must be one of: a source with kind: local;/,
    ],
    [
      'an address whose variable is not set',
      GOOD.replace(':-127.0.0.1:50061', ''),
      '/bank/tools.yaml:24:8: address refers to FAR, which is not set.',
    ],
    [
      'a built-in tool that does not exist',
      GOOD.replace('kind: local, module: ./src/tools.ts', 'kind: builtin'),
      '/bank/tools.yaml:3:11: built-in tool pay does not exist. Available tools: http_fetch.',
    ],
    [
      'an allowlist with an unknown tool',
      GOOD.replace('payer: [pay, look]', 'payer: [pay, lock]'),
      '/bank/tools.yaml:26:26: tool lock does not exist.',
    ],
  ])('reports the position of %s', (_, text, expected) => {
    const [problem, ...more] = problems(text);
    expect(more).toEqual([]);
    if (typeof expected === 'string') expect(problem).toBe(expected);
    else expect(problem).toMatch(expected);
  });

  it('takes the definition from the built-in tool and overrides from tools.yaml', () => {
    const { registry, sources } = load(`
tools:
  - { name: http_fetch, source: own, risk: 0.2, timeout: 3s }
sources:
  own: { kind: builtin, allow_hosts: ["WIKI.corp:443", "[0:0::1]:8080"], allow_ports: [8443] }
`);
    expect(registry.tools.get('http_fetch')).toMatchObject({
      sideEffect: 'read_only',
      risk: 0.2,
      timeoutMs: 3_000,
      maxCallsPerAgent: 10,
    });
    expect(sources[0]?.origin).toEqual({
      kind: 'builtin',
      egress: { hosts: ['wiki.corp:443', '[::1]:8080'], ports: [8443] },
    });
    expect(() =>
      load('{ tools: [], sources: { own: { kind: builtin, allow_hosts: [wiki.corp] } } }'),
    ).toThrow('allow_hosts must contain host:port, such as wiki.corp:443.');
  });

  describe('with an MCP server', () => {
    const MCP = `
tools:
  - { name: wiki__read, source: wiki, side_effect: read_only, risk: 0.1 }
  - { name: wiki__lost, source: wiki }
sources:
  wiki: { kind: mcp, url: "https://wiki.example/mcp", headers: { authorization: "Bearer \${TOKEN}" } }
  files: { kind: mcp, command: node, args: [./files.js], env: { ROOT: "\${TOKEN}" } }
allow:
  agents: { clerk: [wiki__read, files__list] }
`;
    const offered = {
      description: 'Reads.',
      inputSchema: { type: 'object' },
      sideEffect: 'destructive',
      risk: 1,
    } as const;

    it('reads its transport with resolved variables', () => {
      const [wiki, files] = load(MCP, { TOKEN: 't' }).sources.map(({ origin }) => origin);
      expect(wiki).toMatchObject({
        server: { url: 'https://wiki.example/mcp', headers: { authorization: 'Bearer t' } },
      });
      expect(files).toMatchObject({
        server: { command: 'node', args: ['./files.js'], env: { ROOT: 't' }, cwd: '/bank' },
      });
      expect(() => load(MCP)).toThrow('headers.authorization refers to TOKEN, which is not set.');
      expect(() => load(MCP.replace('https:', 'file:'), { TOKEN: 't' })).toThrow(
        '/bank/tools.yaml:6:9: url must be an http or https URL.',
      );
      expect(() => load(MCP.replace('name: wiki__lost', 'name: lost'), { TOKEN: 't' })).toThrow(
        'tools of wiki are named wiki__<tool>.',
      );
    });

    it('completes entries with its offer and warns about ignored tools', () => {
      const bad = { ...offered, inputSchema: { type: 'array' } } as const;
      const { registry, warnings } = load(MCP, { TOKEN: 't' }).complete(
        new Map([
          ['wiki', { wiki__read: offered, wiki__write: offered }],
          ['files', { files__list: bad, 'files__no spaces': offered }],
        ]),
      );
      expect([...registry.tools.keys()]).toEqual(['wiki__read', 'wiki__write']);
      expect(registry.tools.get('wiki__read')).toMatchObject({
        description: 'Reads.',
        sideEffect: 'read_only',
        risk: 0.1,
      });
      expect(registry.tools.get('wiki__write')).toMatchObject({
        sideEffect: 'destructive',
        risk: 1,
      });
      expect(warnings).toEqual([
        expect.stringContaining('files__list of source files is ignored'),
        expect.stringContaining('files__no spaces of source files is ignored'),
        'Tool wiki__lost is ignored: source wiki does not offer it.',
      ]);
    });

    it('ignores an offer of a tool that tools.yaml declares with another source', () => {
      const { registry, warnings } = load(MCP, { TOKEN: 't' }).complete(
        new Map([
          ['files', { wiki__read: { ...offered, description: 'Taken over.' } }],
          ['wiki', { wiki__read: offered }],
        ]),
      );
      expect(registry.tools.get('wiki__read')).toMatchObject({
        description: 'Reads.',
        source: 'wiki',
      });
      expect(warnings).toContain(
        'Tool wiki__read of source files is ignored: tools.yaml declares it with source wiki.',
      );
    });

    it.each([
      ['wiki', 'wiki__eu'],
      ['a', 'a_'],
    ])('rejects sources %s and %s, whose tools could have the same names', (first, second) => {
      const server = '{ kind: mcp, url: "https://wiki.example/mcp" }';
      const text = (kind: string) =>
        `{ tools: [], sources: { ${second}: ${kind}, ${first}: ${server} } }`;
      expect(problems(text(server))).toEqual([
        `/bank/tools.yaml:1:${27 + second.length}: tools of ${second} could have the same names as tools of ${first}. Rename one of the sources.`,
      ]);
      expect(problems(text('{ kind: local, module: ./tools.ts }'))).toEqual([]);
    });
  });

  it('warns that zero calls disables a tool', () => {
    const { warnings } = load(GOOD.replace('max_repeats: 2', 'max_repeats: 0'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/max_repeats is 0, which disables the tool/);
  });
});
