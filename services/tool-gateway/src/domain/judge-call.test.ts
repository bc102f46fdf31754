import { describe, expect, it } from 'vitest';
import { definition, writ } from '../../test/definitions.ts';
import { parseArguments } from './call-arguments.ts';
import type { Counters, Tally } from './find-loop.ts';
import { judgeCall } from './judge-call.ts';
import { type Allow, createRegistry } from './registry.ts';
import { compileTool } from './tool.ts';

const PAY = compileTool(definition());
const NEVER: Tally = { calls: 0, lastCallId: '' };
const FRESH: Counters = { ofRun: 0, ofTool: NEVER, ofSignature: NEVER };
const ONCE: Tally = { calls: 1, lastCallId: 'op-7' };
const TWICE: Tally = { calls: 2, lastCallId: 'op-8' };
const GOOD = '{"to":"anna"}';

interface Case {
  readonly writ?: Parameters<typeof writ>[0];
  readonly counters?: Partial<Counters>;
  readonly args?: string;
  readonly allow?: Allow;
}

function judge({ writ: over, counters, args = GOOD, allow }: Case) {
  return judgeCall(
    writ({ definitionDigest: PAY.digest, ...over }),
    createRegistry([PAY], allow),
    { ...FRESH, ...counters },
    parseArguments(args),
  );
}

function stopReason(given: Case): string {
  const verdict = judge(given);
  return verdict.kind === 'refuse' ? verdict.stopReason : 'none';
}

function message(given: Case): string {
  const verdict = judge(given);
  return verdict.kind === 'refuse' ? verdict.message : '';
}

describe('judgeCall (TG-2)', () => {
  it('admits a call that passes every check', () => {
    expect(judge({})).toMatchObject({
      kind: 'execute',
      args: { to: 'anna' },
      counted: { ofTool: true, ofSignature: true },
    });
  });

  it('refuses in the order of TG-2: the first failed check decides', () => {
    // Every check fails at first; each step fixes the one that was reported.
    const wrong: Case = {
      writ: { maxToolCalls: 5, allowedTools: [], tool: 'steal', definitionDigest: 'old' },
      counters: { ofRun: 5, ofTool: TWICE, ofSignature: ONCE },
      args: '{}',
    };
    const steps: [string, Case][] = [
      ['max_tool_calls', wrong],
      ['tool_denied:steal', { ...wrong, counters: { ...wrong.counters, ofRun: 4 } }],
    ];
    const allowed = {
      ...wrong,
      writ: { ...wrong.writ, maxToolCalls: 6, allowedTools: ['steal', 'pay'] },
    };
    const known = { ...allowed, writ: { ...allowed.writ, tool: 'pay' } };
    const reviewed = { ...known, writ: { ...known.writ, definitionDigest: PAY.digest } };
    const wellFormed = { ...reviewed, args: GOOD };
    const fewer = { ...wellFormed, counters: { ofRun: 5, ofTool: ONCE, ofSignature: ONCE } };
    steps.push(
      ['tool_missing:steal', allowed],
      ['tool_changed:pay', known],
      ['tool_bad_args:pay', reviewed],
      ['loop_detected:per_tool_limit', wellFormed],
      ['loop_detected:signature_repeat', fewer],
      ['none', { ...fewer, counters: { ofRun: 5, ofTool: ONCE } }],
    );
    expect(steps.map(([, given]) => stopReason(given))).toEqual(steps.map(([reason]) => reason));
  });

  it('denies every tool to a writ without an allowlist (SYS-4)', () => {
    expect(stopReason({ writ: { allowedTools: [] } })).toBe('tool_denied:pay');
  });

  it('denies a tool that the gateway does not allow for the agent or its tenant, even if the writ allows it', () => {
    expect(stopReason({ allow: { agents: { clerk: ['pay'] } } })).toBe('tool_denied:pay');
    expect(stopReason({ allow: { agents: { '*': ['pay'], payer: [] } } })).toBe('tool_denied:pay');
    expect(stopReason({ allow: { tenants: { other: ['*'] } } })).toBe('tool_denied:pay');
    expect(stopReason({ allow: { agents: { '*': ['pay'] }, tenants: { acme: ['*'] } } })).toBe(
      'none',
    );
  });

  it('names each argument that is unknown, missing or of the wrong type (TG-3)', () => {
    const text = message({ args: '{"cents":true,"bcc":"eve"}' });
    expect(text).toContain('Argument bcc is not defined by the tool.');
    expect(text).toContain('Argument to is required and missing.');
    expect(text).toContain('Argument cents does not fit its schema.');
  });

  it('requires fillable arguments at execution (TG-3)', () => {
    const tool = compileTool(
      definition({
        inputSchema: {
          type: 'object',
          properties: { to: { type: 'string', fillable: true } },
          required: ['to'],
        },
      }),
    );
    const verdict = judgeCall(
      writ({ definitionDigest: tool.digest }),
      createRegistry([tool]),
      FRESH,
      parseArguments('{}'),
    );
    expect(verdict).toMatchObject({ kind: 'refuse', stopReason: 'tool_bad_args:pay' });
  });

  it.each([
    ['invalid JSON', '{'],
    ['nothing', ''],
    ['an array', '[]'],
    ['null', 'null'],
    ['a duplicate key', '{"to":"a","to":"b"}'],
    ['a __proto__ key', '{"__proto__":{},"to":"a"}'],
    ['NaN', '{"to":"a","cents":NaN}'],
    ['half a surrogate pair', '{"to":"\\ud800"}'],
    ['an integer past 2^53', '{"to":"a","cents":9007199254740993}'],
    ['33 levels', `{"to":${'['.repeat(32)}${']'.repeat(32)}}`],
  ])('refuses arguments that are %s with one sentence (TG-4)', (_, args) => {
    expect(stopReason({ args })).toBe('tool_bad_args:pay');
    expect(message({ args })).toMatch(/arguments_json/);
  });

  it('applies to external agents only the limits that tools.yaml sets (AP-1)', () => {
    const often: Tally = { calls: 500, lastCallId: 'op-9' };
    const asked = (explicitLimits?: Parameters<typeof compileTool>[1], noDefaultLimits = true) => {
      const tool = compileTool(definition(), explicitLimits);
      const verdict = judgeCall(
        writ({ definitionDigest: tool.digest, noDefaultLimits }),
        createRegistry([tool]),
        { ...FRESH, ofTool: often, ofSignature: often },
        parseArguments(GOOD),
      );
      return verdict.kind === 'refuse' ? verdict.stopReason : verdict.kind;
    };
    expect(asked({})).toBe('execute');
    expect(asked({ maxRepeats: 500 })).toBe('loop_detected:signature_repeat');
    expect(asked({ maxCallsPerAgent: 500 })).toBe('loop_detected:per_tool_limit');
    expect(asked({}, false)).toBe('loop_detected:per_tool_limit');
    expect(asked()).toBe('loop_detected:per_tool_limit');
  });

  it('names the repeated call and its count in the message', () => {
    expect(message({ counters: { ofTool: TWICE } })).toBe(
      'This agent has made 2 calls of pay, the last one as op-8; the limit is 2 (max_calls_per_agent). Use the earlier results, or continue without pay.',
    );
    expect(judge({ counters: { ofTool: TWICE } })).toMatchObject({
      repetition: { tool: 'pay', argsHash: '', earlierCallId: 'op-8', calls: 2, limit: 2 },
    });
    const { hash: argsHash } = { hash: '', ...parseArguments(GOOD) };
    expect(judge({ counters: { ofSignature: ONCE } })).toMatchObject({
      repetition: { tool: 'pay', argsHash, earlierCallId: 'op-7', calls: 1, limit: 1 },
    });
    expect(message({ counters: { ofSignature: ONCE } })).toMatch(
      /^This agent has made 1 call of pay with these same arguments \(args_hash [0-9a-f]{12}\), the last one as op-7; the limit is 1 \(max_repeats\)\./,
    );
  });

  it('counts a repeat for the tool, and a call with invalid arguments only for the run', () => {
    expect(judge({ counters: { ofSignature: ONCE } })).toMatchObject({
      counted: { ofTool: true, ofSignature: false },
    });
    expect(judge({ args: '{}' })).toMatchObject({ counted: { ofTool: false, ofSignature: false } });
  });
});

describe('the registry', () => {
  it('changes its version when a definition or an allowlist changes (TG-2)', () => {
    const versions = [
      createRegistry([PAY]),
      createRegistry([compileTool(definition({ risk: 0.6 }))]),
      createRegistry([PAY], { agents: { payer: ['pay'] } }),
      createRegistry([PAY], { tenants: { payer: ['pay'] } }),
    ].map(({ version }) => version);
    expect(new Set(versions).size).toBe(4);
    expect(createRegistry([compileTool(definition())]).version).toBe(versions[0]);
  });
});
