import { createModelSimulator, type ModelSimulator, type Script } from '@writ/simulator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Runs the scripts against a plain model of the rules and limits, without services. */

const DIRECTORY = import.meta.dirname;
const MAX_TOOL_CALLS = 5;
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  get_refund_context: { user_id: 'number' },
  issue_refund: { user_id: 'number', amount_usd: 'number', reason: 'string' },
  send_refund_email: { user_id: 'number', amount_usd: 'number', message: 'string' },
};
const PER_TOOL: Readonly<Record<string, number>> = { get_refund_context: 3 };
const REPEATS: Readonly<Record<string, number>> = { get_refund_context: 2 };

interface Action {
  readonly kind: string;
  readonly name?: string;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly answer?: string;
}

interface Step {
  readonly step: number;
  readonly action: Action;
  readonly executed_action: Action;
  readonly observation: unknown;
}

interface Ending {
  readonly status: string;
  readonly stop_reason: string;
  readonly answer?: string;
  readonly executed: readonly Action[];
}

/** Ends a run early; the message is the stop reason. */
class Stopped extends Error {}

let simulator: ModelSimulator;

beforeAll(async () => {
  simulator = await createModelSimulator({ scripts: DIRECTORY });
});

afterAll(() => simulator.close());

async function ask(script: Script, payload: object): Promise<string> {
  const response = await fetch(`${simulator.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer any' },
    body: JSON.stringify({
      model: `sim:${script.name}`,
      messages: [{ role: 'user', content: JSON.stringify(payload) }],
    }),
    signal: AbortSignal.timeout(script.expect?.stop_reason === 'llm_timeout' ? 50 : 5000),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'TimeoutError') return undefined;
    throw error;
  });
  if (response === undefined) throw new Stopped('llm_timeout');
  const body = (await response.json()) as {
    readonly choices?: readonly { readonly message: { readonly content: string } }[];
  };
  const text = body.choices?.[0]?.message.content;
  if (text === undefined) throw new Error(JSON.stringify(body));
  return text;
}

function validated(text: string): Action {
  let action: Action;
  try {
    action = JSON.parse(text) as Action;
  } catch {
    throw new Stopped('invalid_action:non_json');
  }
  if (action.kind === 'final') return action;
  const types = ARGUMENTS[action.name ?? ''];
  if (types === undefined) throw new Stopped(`invalid_action:unknown_tool:${action.name}`);
  for (const [name, type] of Object.entries(types)) {
    const actual = typeof action.args?.[name];
    if (actual !== type && !(name === 'reason' && actual === 'undefined')) {
      throw new Stopped(`invalid_action:bad_arg_type:${action.name}:${name}`);
    }
  }
  return action;
}

function reviewed(action: Action, history: readonly Step[], script: Script): Action {
  const done = (tool: string) => history.some(({ executed_action: { name } }) => name === tool);
  if (action.kind === 'final' && !done('get_refund_context')) {
    throw new Stopped('supervisor_block:final_requires_context');
  }
  if (action.name === 'send_refund_email' && !done('issue_refund')) {
    throw new Stopped('supervisor_block:email_before_refund');
  }
  if (action.name !== 'issue_refund') return action;
  const args = { reason: 'As asked.', ...action.args };
  const escalated = Number(action.args?.amount_usd) > 1000;
  expect(script.person === undefined).toBe(!escalated);
  return { ...action, args: escalated ? { ...args, ...script.person?.arguments } : args };
}

function execute(action: Action, calls: readonly string[]): unknown {
  const { name = '', args = {} } = action;
  const signature = `${name}:${JSON.stringify(args)}`;
  const ofTool = calls.filter((call) => call.startsWith(`${name}:`)).length;
  const same = calls.filter((call) => call === signature).length;
  if (calls.length >= MAX_TOOL_CALLS) throw new Stopped('max_tool_calls');
  if (ofTool >= (PER_TOOL[name] ?? 2)) throw new Stopped('loop_detected:per_tool_limit');
  if (same >= (REPEATS[name] ?? 1)) throw new Stopped('loop_detected:signature_repeat');
  if (name === 'issue_refund') return { status: 'ok', refund: { amount_usd: args.amount_usd } };
  return name === 'send_refund_email' ? { status: 'ok', email: args } : { user: {} };
}

async function run(script: Script): Promise<Ending> {
  const goal = 'Refund the annual plan of user 42.';
  const history: Step[] = [];
  const executed: Action[] = [];
  try {
    for (let step = 1; step <= (script.agent === 'refund-worker-brief' ? 3 : 8); step += 1) {
      const state_summary = { steps_completed: history.length, last_step: history.at(-1) ?? null };
      const action = validated(await ask(script, { goal, state_summary }));
      const approved = reviewed(action, history, script);
      if (approved.kind === 'final') {
        return { status: 'ok', stop_reason: 'success', answer: approved.answer ?? '', executed };
      }
      const calls = executed.map(({ name, args }) => `${name}:${JSON.stringify(args)}`);
      const observation = execute(approved, calls);
      executed.push(approved);
      history.push({ step, action, executed_action: approved, observation });
    }
    const answer = await ask(script, { goal, history });
    if (answer.trim() === '') throw new Stopped('llm_empty');
    return { status: 'ok', stop_reason: 'success', answer, executed };
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    return { status: 'stopped', stop_reason: error.message, executed };
  }
}

function scriptOf(name: string): Script {
  const script = simulator.scripts.find((candidate) => candidate.name === name);
  if (script === undefined) throw new Error(`Script ${name} does not exist.`);
  return script;
}

describe('the refund desk’s scripts', () => {
  it('end with the declared outcome (SV-4, SV-7, TG-2)', async () => {
    expect(simulator.scripts.length).toBeGreaterThanOrEqual(13);
    for (const script of simulator.scripts) {
      const { status, stop_reason } = await run(script);
      expect({ name: script.name, status, stop_reason }).toEqual({
        name: script.name,
        ...script.expect,
      });
    }
  });

  it('confirm the approved amount instead of the requested one (SV-6)', async () => {
    for (const name of ['escalate-1200', 'missing-reason-1200']) {
      const { answer, executed } = await run(scriptOf(name));
      expect(answer).toMatch(/^800 USD/);
      expect(executed.map(({ args }) => args?.amount_usd)).toEqual([undefined, 800, 800]);
    }
  });

  it('compose the answer when the steps run out (AG-2)', async () => {
    for (const [name, amount] of [
      ['auto-1000', '1000'],
      ['escalate-1200', '800'],
    ] as const) {
      const { answer } = await run({ ...scriptOf(name), agent: 'refund-worker-brief' });
      expect(answer).toContain(`${amount} USD`);
    }
  });

  it('return the same responses to repeated requests (RT-1)', async () => {
    const script = scriptOf('escalate-1200');
    expect(await run(script)).toEqual(await run(script));
  });
});
