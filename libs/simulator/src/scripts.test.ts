import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '@writ/config';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readChatRequest } from './chat-request.ts';
import { completionOf } from './completion.ts';
import {
  createModelSimulator,
  loadScripts,
  type Reply,
  readRequestLog,
  type When,
} from './index.ts';
import { checkScripts } from './load-scripts.ts';
import { conversationOf, matchEntry } from './match.ts';
import { RequestLog } from './request-log.ts';

type Message = Readonly<Record<string, unknown>>;

function ask(messages: readonly Message[], model = 'm') {
  return readChatRequest(JSON.stringify({ model, messages }));
}

function fits(when: When, messages: readonly Message[], model?: string): boolean {
  const script = { name: 's', entries: [{ when, reply: { text: 'x' } }] };
  return matchEntry(script, conversationOf(ask(messages, model)), () => 0) === 0;
}

const PAYLOAD = {
  goal: 'refund',
  state_summary: { steps_completed: 2, last_step: { observation: { refund: { amount: 800 } } } },
  recent_step_summaries: [{ step: 1 }, { step: 2 }],
};
const DECIDE = [
  { role: 'system', content: 'You decide.' },
  { role: 'user', content: JSON.stringify(PAYLOAD) },
];
const TOOLED = [
  { role: 'user', content: [{ type: 'text', text: 'Look up 42' }] },
  { role: 'assistant', content: null, tool_calls: [] },
  { role: 'tool', tool_call_id: 'c', content: '{"plan":"annual"}' },
];

function folder(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'writ-scripts-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

describe('matching', () => {
  it('matches model, prompts, roles, turns and tool results', () => {
    expect(fits({}, DECIDE)).toBe(true);
    expect(fits({ model: 'gpt-*' }, DECIDE, 'gpt-4.1-mini')).toBe(true);
    expect(fits({ model: 'gpt' }, DECIDE, 'gpt-4.1-mini')).toBe(false);
    expect(fits({ system_contains: ['You', 'decide'] }, DECIDE)).toBe(true);
    expect(fits({ system_contains: 'compose' }, DECIDE)).toBe(false);
    expect(fits({ user_contains: 'Look up', last_role: 'tool', turn: 1 }, TOOLED)).toBe(true);
    expect(fits({ turn: 0 }, TOOLED)).toBe(false);
    expect(fits({ has_tool_result: true, tool_result_contains: 'annual' }, TOOLED)).toBe(true);
    expect(fits({ has_tool_result: true }, DECIDE)).toBe(false);
    const later = [...TOOLED, { role: 'user', content: 'And now?' }];
    expect(fits({ has_tool_result: true }, later)).toBe(false);
  });

  it('matches the JSON that stateless agents send (AG-2)', () => {
    const path = (json_path: When['json_path'] & object) => fits({ json_path }, DECIDE);
    expect(path({ 'state_summary.steps_completed': 2, goal: 'refund' })).toBe(true);
    expect(path({ 'state_summary.steps_completed': 3 })).toBe(false);
    expect(path({ 'recent_step_summaries.-1': { step: 2 } })).toBe(true);
    expect(path({ 'recent_step_summaries.length': 2 })).toBe(false);
    expect(path({ 'goal.length': 6 })).toBe(false);
    expect(fits({ json_has: ['state_summary'] }, DECIDE)).toBe(true);
    expect(fits({ json_has: ['history'] }, DECIDE)).toBe(false);
    expect(fits({ json_path: { goal: 'refund' } }, TOOLED)).toBe(false);
  });

  it('depends only on the conversation and on how often each entry was used', () => {
    const message = fc.record({
      role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
      content: fc.oneof(fc.string(), fc.json()),
    });
    const script = {
      name: 's',
      entries: [
        { when: { turn: 1 }, times: 1, reply: { text: 'a' } },
        { when: { last_role: 'tool' as const }, reply: { text: 'b' } },
        { times: 2, reply: { text: 'c' } },
      ],
    };
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 5 }), fc.nat(3), (messages, n) => {
        const match = () => matchEntry(script, conversationOf(ask(messages)), () => n);
        expect(match()).toBe(match());
        if (n >= 2) expect([1, undefined]).toContain(match());
      }),
      { numRuns: 100 },
    );
  });
});

describe('placeholders', () => {
  const fill = (reply: object, messages: readonly Message[] = DECIDE, values = {}) => {
    const request = ask(messages);
    return completionOf(
      reply,
      { request, conversation: conversationOf(request), values },
      new Date(0),
    ).text;
  };

  it('insert values of the request, keep types, and try alternative paths', () => {
    const amount = `\${json:state_summary.last_step.email.amount | state_summary.last_step.observation.refund.amount}`;
    expect(fill({ json: { amount_usd: amount, text: `Paid ${amount} USD` } })).toBe(
      '{"amount_usd":800,"text":"Paid 800 USD"}',
    );
    expect(fill({ text: `Plan: \${tool:plan}` }, TOOLED)).toBe('Plan: annual');
    expect(fill({ json: `\${json:recent_step_summaries.-1}` })).toBe('{"step":2}');
  });

  it('can refer to named values', () => {
    const values = { paid: `\${json:state_summary.last_step.observation.refund.amount}` };
    const reply = { json: { amount: `\${value:paid}`, text: `Paid \${value:paid} USD` } };
    expect(fill(reply, DECIDE, values)).toBe('{"amount":800,"text":"Paid 800 USD"}');
  });

  it('are not expanded inside inserted values', () => {
    const injected = [{ role: 'user', content: JSON.stringify({ goal: `\${json:nothing}` }) }];
    expect(fill({ json: { a: `\${json:goal}` } }, injected)).toBe(`{"a":"\${json:nothing}"}`);
  });

  it('without a value fail the request and are named in the error', async () => {
    const simulator = await createModelSimulator({
      scripts: [{ name: 'one', entries: [{ reply: { text: `\${json:a.b}` } }] }],
    });
    const response = await fetch(`${simulator.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer any' },
      body: JSON.stringify({ model: 'sim:one', messages: DECIDE }),
    });
    expect(response.status).toBe(500);
    expect(JSON.stringify(await response.json())).toContain(
      `The request has no value for \${json:a.b}`,
    );
    await simulator.close();
  });
});

describe('script files', () => {
  it('report every problem with file, line and column (SYS-3)', () => {
    const directory = folder({
      'a.yaml': 'name: a\nentries:\n  - wen: {}\n    reply: { text: hi }\n',
      'b.yaml':
        'name: x\nentries:\n  - reply: { text: hi, json: {} }\n  - reply: { delay_ms: 1 }\n',
      'c.yaml': `name: c\nentries:\n  - reply: { text: "\${jsn:x}" }\n`,
      'cc.yaml': `name: cc\nvalues:\n  a: "\${value:a}"\nentries:\n  - reply: { text: "\${value:b}" }\n`,
      'd.yaml': 'name: d\nentries: [\n',
      'notes.txt': 'not a script',
    });
    let problems: readonly string[] = [];
    try {
      loadScripts(directory);
    } catch (error) {
      if (error instanceof ConfigError) problems = error.problems;
    }
    const short = problems.map((problem) => problem.replace(`${directory}/`, ''));
    expect(short).toEqual([
      'a.yaml:3:5: unknown key "wen"; known keys: when, times, reply.',
      'b.yaml:1:7: name must be b, the name of the file.',
      'b.yaml:3:12: a reply cannot have both json and text.',
      'b.yaml:4:12: a reply requires one of json, text, tool_calls, error and garbage.',
      `c.yaml:3:12: "\${jsn:x}" is not a valid placeholder; write \${json:path}, \${tool:path} or \${value:name}.`,
      expect.stringMatching(/^cc\.yaml:3:6: "\${value:a}" is not a valid placeholder/),
      expect.stringMatching(/^cc\.yaml:5:12: "\${value:b}" is not a valid placeholder/),
      expect.stringMatching(/^d\.yaml:3:1: /),
    ]);
  });

  it('report the answers that a reply cannot have together (SYS-3)', () => {
    const text = 'hi';
    const tool_calls = [{ name: 'pay', arguments: {} }];
    const error = { status: 503, message: 'down' };
    const problemOf = (reply: Reply) => () => checkScripts([{ name: 'a', entries: [{ reply }] }]);
    expect(problemOf({ text, tool_calls })).not.toThrow();
    expect(problemOf({ text, tool_calls, error })).toThrow('cannot have both text and error.');
    expect(problemOf({ tool_calls, error })).toThrow('cannot have both tool_calls and error.');
  });

  it('must include at least one script', () => {
    expect(() => loadScripts(folder({}))).toThrow('contains no script (*.yaml or *.yml).');
  });

  it('have the same validation as scripts in code, which reports every problem', async () => {
    const one = { name: 'one', entries: [{ reply: {} }] };
    await expect(createModelSimulator({ scripts: [one, one] })).rejects.toThrow(
      /one\.entries\.0\.reply: a reply requires one of[\s\S]*Script name "one" is not unique\./,
    );
  });
});

describe('the request log', () => {
  it('records every request before it is answered, and survives SIGKILL (EM-7)', async () => {
    const directory = folder({
      'one.yaml': [
        'name: one',
        'entries:',
        '  - times: 1',
        '    reply: { error: { status: 503, message: down } }',
        '  - times: 1',
        '    reply: { text: late, delay_ms: 60000 }',
        '  - reply: { text: third }',
      ].join('\n'),
    });
    const requestLog = join(directory, 'requests.jsonl');
    const options = JSON.stringify({ scripts: directory, requestLog });
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `const { createModelSimulator } = await import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)});
         console.log((await createModelSimulator(${options})).url);`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const post = (url: string) =>
      fetch(`${url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer any', 'x-request-id': 'call_1' },
        body: JSON.stringify({ model: 'sim:one', messages: DECIDE }),
      });
    const url = line.toString().trim();
    expect((await post(url)).status).toBe(503);
    const second = post(url).catch(() => 'torn');
    await expect.poll(() => readRequestLog(requestLog).length, { interval: 5 }).toBe(2);
    child.kill('SIGKILL');
    expect(await second).toBe('torn');

    const restarted = await createModelSimulator({ scripts: directory, requestLog });
    expect(await (await post(restarted.url)).text()).toContain('third');
    await restarted.close();
    const log = readRequestLog(requestLog);
    expect(log).toMatchObject([
      { call: 1, script: 'one', entry: 0, request_id: 'call_1', model: 'sim:one' },
      { call: 2, entry: 1 },
      { call: 3, entry: 2 },
    ]);
    expect(new Set(log.map(({ digest }) => digest)).size).toBe(1);
  });

  it('skips only the line that a crash truncated (EM-7)', () => {
    const file = join(folder({}), 'requests.jsonl');
    const record = {
      time: '2026-01-01T00:00:00.000Z',
      script: 'one',
      model: 'sim:one',
      entry: 0,
      stream: false,
      digest: 'd',
      request_id: null,
      traceparent: null,
    };
    new RequestLog(file).open(record);
    appendFileSync(file, '{"time":"2026-01-0');
    new RequestLog(file).open(record);
    new RequestLog(file).open(record);
    expect(readRequestLog(file).map(({ call }) => call)).toEqual([1, 2, 3]);
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(5);
  });
});
