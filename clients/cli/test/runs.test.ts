import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { runCommand } from './command.ts';

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

const writ = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  runCommand(test, args, env);

const START = ['run', 'refund-worker', 'Refund order 7.', '--model'];

async function detached(model: string): Promise<string> {
  const { out } = await writ([...START, model, '--detach']);
  return out[0] ?? '';
}

async function pending(runId: string): Promise<string> {
  return await vi.waitFor(async () => {
    const { out } = await writ(['approvals', 'list', '--run', runId, '-o', 'json']);
    const { approvals = [] } = JSON.parse(out.join('\n')) as {
      approvals?: { approvalId: string }[];
    };
    expect(approvals).toHaveLength(1);
    return approvals[0]?.approvalId ?? '';
  });
}

describe('writ tools', () => {
  it('lists tools with arguments, effect and risk, and their schemas as JSON (PE-2)', async () => {
    const { out } = await writ(['tools']);
    expect(out[0]).toMatch(/^TOOL +ARGUMENTS +EFFECT +RISK +SOURCE +DESCRIPTION$/);
    expect(out.join('\n')).toMatch(
      /^issue_refund +user_id, amount_usd, reason +idempotent +0\.7 /m,
    );
    const json = await writ(['tools', '-o', 'json']);
    const { tools } = JSON.parse(json.out.join('\n')) as { tools: { inputSchemaJson: string }[] };
    expect(tools.length).toBe(3);
    for (const tool of tools) expect(JSON.parse(tool.inputSchemaJson)).toHaveProperty('type');
  });
});

describe('writ run', () => {
  it('follows a run to its end in the words of npm start, and finds the development key (PE-2)', async () => {
    const { exit, out, err } = await writ([...START, 'sim-auto-1000', '--label', 'case=7']);
    expect({ exit, err }).toEqual({ exit: 0, err: [] });
    expect(out[0]).toMatch(/^run run_\w+ {3}trace \w+$/);
    expect(out.join('\n')).toMatch(
      /proposes {2}get_refund_context [\s\S]+executed {2}by tool-gateway/,
    );
    expect(out.at(-1)).toMatch(/^success: 4 steps, \d+ tokens, [\d.]+ USD$/);
  });

  it('ends at Ctrl-C while the run continues (PE-2)', async () => {
    const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
    const { edgeUrl: WRIT_ADDRESS } = test.platform;
    const child = spawn(process.execPath, [main, ...START, 'sim-escalate-1200'], {
      env: { ...process.env, WRIT_ADDRESS, WRIT_DATA: test.dataDir },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    const closed = once(child, 'close');
    await vi.waitFor(() => expect(err).toContain('To decide: writ approvals get'));
    child.kill('SIGINT');
    expect(await closed).toEqual([130, null]);
    const runId = /Run (run_\w+) continues: writ runs watch/.exec(err)?.[1] ?? '';
    expect((await writ(['approvals', 'reject', await pending(runId)])).exit).toBe(0);
  });

  it('ends with 1 when the run does not succeed, and prints events as JSON lines (PE-2)', async () => {
    const { exit, out } = await writ([...START, 'sim-unknown-tool', '-o', 'json']);
    expect(exit).toBe(1);
    const events = out.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, at) => at + 1));
    expect(events.at(-1)).toHaveProperty('result.status', 'RUN_STATUS_STOPPED');
  });

  it('names what is wrong and starts nothing (SYS-3)', async () => {
    const runs = async () => (await writ(['runs', 'list'])).out.length;
    const before = await runs();
    const wrong: Record<string, readonly string[]> = {
      'unknown-agent': ['run', 'unknown-agent', 'Refund.'],
      data_json: [...START, 'sim-auto-1000', '--data', '[]'],
      '--max-cost-usd': [...START, 'sim-auto-1000', '--max-cost-usd', 'much'],
      '--max-tokens': [...START, 'sim-auto-1000', '--max-tokens', '-1'],
    };
    for (const [name, args] of Object.entries(wrong)) {
      const { exit, out, err } = await writ(args);
      expect({ exit, out }, args.join(' ')).toEqual({ exit: 2, out: [] });
      expect(err.join('\n')).toContain(name);
    }
    expect(await runs()).toBe(before);
  });
});

describe('writ runs', () => {
  it('lists, filters and shows runs as text, JSON and YAML (PE-2)', async () => {
    const { out } = await writ([...START, 'sim-auto-1000', '--session', 'ses-list']);
    const runId = out[0]?.split(' ')[1] ?? '';
    const list = (...args: string[]) => writ(['runs', 'list', '--session', 'ses-list', ...args]);
    const [headings, row] = (await list()).out;
    expect(headings).toMatch(/^RUN +AGENT +KIND +STATE +STARTED +COST +GOAL$/);
    expect(row).toMatch(
      new RegExp(
        `^${runId} +refund-worker +json action +completed +\\d{4}-\\S+ \\S+Z +[\\d.]+ USD +Refund order 7\\.$`,
      ),
    );
    expect(parse((await list('-o', 'yaml')).out.join('\n'))).toMatchObject({
      runs: [{ runId, state: 'RUN_STATE_COMPLETED' }],
    });
    expect(await list('--state', 'error')).toEqual({ exit: 0, out: [], err: ['No runs.'] });
    const shown = (await writ(['runs', 'get', runId])).out;
    expect(shown).toContainEqual(expect.stringMatching(/^stop reason: +success$/));
    const watched = await writ(['runs', 'watch', runId]);
    expect(watched).toEqual({ exit: 0, out, err: [] });
  });

  it('says that more runs exist (PE-2)', async () => {
    await writ([...START, 'sim-auto-1000']);
    await writ([...START, 'sim-auto-1000']);
    const { out, err } = await writ(['runs', 'list', '--limit', '1']);
    expect(out).toHaveLength(2);
    expect(err).toEqual(['More runs exist: raise --limit above 1.']);
  });

  it('cancels a run that waits for a person (SUP-5, PE-2)', async () => {
    const runId = await detached('sim-escalate-1200');
    await pending(runId);
    expect((await writ(['runs', 'cancel', runId, '--reason', 'Wrong order.'])).exit).toBe(0);
    const { exit, out } = await writ(['runs', 'watch', runId]);
    expect(exit).toBe(1);
    expect(out.join('\n')).toContain('cancelled');
  });

  it('tells an unknown run, a wrong key and a missing platform apart (SYS-3)', async () => {
    expect(await writ(['runs', 'get', 'run-0'])).toMatchObject({
      exit: 2,
      err: ['Run run-0 does not exist.'],
    });
    const [key = ''] = (await writ(['runs', 'list'], { WRIT_API_KEY: 'wrong' })).err;
    expect(key).toContain('The API key is not valid. Set WRIT_API_KEY');
    const [closed = ''] = (await writ(['runs', 'list'], { WRIT_ADDRESS: '127.0.0.1:1' })).err;
    expect(closed).toBe(
      'Nothing answers at 127.0.0.1:1. Is Writ running there? Set --address or WRIT_ADDRESS to the address of its public API.',
    );
    const [away = ''] = (await writ(['runs', 'list'], { WRIT_ADDRESS: 'writ.example' })).err;
    expect(away).toContain('WRIT_API_KEY is not set');
    const [ftp = ''] = (await writ(['runs', 'list', '--address', 'ftp://127.0.0.1'])).err;
    expect(ftp).toContain('must be host:port, or a URL that begins with http:// or https://');
  });
});

describe('writ approvals', () => {
  it('shows what an approver needs, refuses what they may not, and edits (SV-5, PE-2)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    const { out } = await writ(['approvals', 'get', id]);
    const text = out.join('\n');
    expect(text).toMatch(/^action: +issue_refund \{"amount_usd":1200,/m);
    expect(text).toMatch(/^you may change: +amount_usd up to 800$/m);
    expect(text).toMatch(/^goal: +Refund order 7\.$/m);
    expect(text).toMatch(
      /^ +1 {2}refund-worker: get_refund_context \{"user_id":42\}: approve, ok\n +\{"user"/m,
    );
    expect(out.slice(-2)).toEqual([
      `writ approvals edit ${id} amount_usd=VALUE`,
      `writ approvals reject ${id}`,
    ]);
    for (const refused of [
      ['approve', id],
      ['edit', id, 'amount_usd=900'],
      ['edit', id, 'reason=No'],
    ]) {
      const answer = await writ(['approvals', ...refused]);
      expect(answer).toMatchObject({ exit: 2, out: [] });
      expect(answer.err.join()).toMatch(/cap of 800 USD|is locked/);
    }
    const edited = await writ(['approvals', 'edit', id, 'amount_usd=700', '--comment', 'In part.']);
    expect(edited.exit).toBe(0);
    expect(edited.out).toContainEqual(expect.stringMatching(/^basis: +approved_with_cap:700$/));
    const watched = await writ(['runs', 'watch', runId]);
    expect(watched.exit).toBe(0);
    expect(watched.out.join('\n')).toMatch(/edited {4}to issue_refund \{"amount_usd":700,/);
    expect((await writ(['approvals', 'reject', id])).err.join()).toContain(
      'was approved by developer',
    );
    expect((await writ(['approvals', 'list', '--run', runId])).err).toEqual(['No approvals.']);
    expect((await writ(['approvals', 'list', '--run', runId, '--all'])).out).toHaveLength(2);
  });

  it('rejects, and the watch of the run tells how to decide (SV-5, PE-2)', async () => {
    const runId = await detached('sim-escalate-1200');
    const watch = writ(['runs', 'watch', runId]);
    const id = await pending(runId);
    expect((await writ(['approvals', 'reject', id])).exit).toBe(0);
    const { exit, out } = await watch;
    expect(exit).toBe(1);
    expect(out.join('\n')).toContain('human_rejected (human_approval)');
  });

  it('wants exactly one outcome of a call, and changes as argument=value (SYS-3)', async () => {
    for (const args of [
      ['resolve', 'apr-0'],
      ['resolve', 'apr-0', '--not-done', '--result', '{}'],
      ['edit', 'apr-0', 'amount_usd'],
    ]) {
      const { exit, err } = await writ(['approvals', ...args]);
      expect(exit).toBe(2);
      expect(err.join()).toMatch(
        /Exactly one of --result and --not-done|A change is argument=value/,
      );
    }
  });
});

describe('writ usage, budgets, pools, agents and models', () => {
  it('sums usage by dimensions (EM-10, PE-1)', async () => {
    const { out } = await writ([...START, 'sim-auto-1000', '--session', 'ses-usage']);
    const cost = /([\d.]+ USD)$/.exec(out.at(-1) ?? '')?.[1];
    const sums = await writ(['usage', '--by', 'model,day', '--session', 'ses-usage']);
    expect(sums.out[0]).toMatch(/^MODEL +DAY +INPUT TOKENS +OUTPUT TOKENS +TURNS +FAILED +COST$/);
    expect(sums.out[1]).toMatch(/^sim-auto-1000 +\d{4}-\d\d-\d\d +\d+ +\d+ +4 +0 +[\d.]+ USD$/);
    expect(sums.out[1]?.endsWith(` ${cost}`)).toBe(true);
    const later = await writ([
      'usage',
      '--session',
      'ses-usage',
      '--since',
      '2999-01-01',
      '--by',
      'run',
    ]);
    expect(later).toEqual({ exit: 0, out: [], err: ['No usage.'] });
    expect((await writ(['usage', '--by', 'colour'])).err.join()).toContain(
      'Dimensions are agent, run',
    );
    expect((await writ(['usage', '--since', 'yesterday'])).err.join()).toContain('2026-11-01');
  });

  it('shows what is left, and sets and removes caps (EM-3, PE-1)', async () => {
    const { out } = await writ([
      ...START,
      'sim-auto-1000',
      '--max-cost-usd',
      '0.50',
      '--session',
      'ses-caps',
    ]);
    const runId = out[0]?.split(' ')[1] ?? '';
    const levels = await writ(['budgets', 'get', '--run', runId]);
    expect(levels.out[2]).toMatch(/^run +0\.00\d+ USD +0\.00 USD +0\.49\d+ USD /);
    const set = await writ(['budgets', 'set', '--session', 'ses-caps', '--max-turns', '9']);
    expect(set.out[1]).toMatch(/^session .* 4 +0 +5 +developer$/);
    const removed = await writ(['budgets', 'set', '--session', 'ses-caps', '--remove']);
    expect(removed.out[1]).toMatch(/^session .* 4 +0 +no cap$/);
    for (const args of [
      [],
      ['--day', '--month', '--max-turns', '1'],
      ['--day'],
      ['--day', '--remove', '--max-turns', '1'],
    ]) {
      expect(await writ(['budgets', 'set', ...args])).toMatchObject({ exit: 2, out: [] });
    }
  });

  it('shows who has a slot while an agent waits for a person (SB-5, PE-1)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    const { out } = await writ(['pools', 'get', runId]);
    expect(out[1]).toMatch(/^refund-worker \(\S+\) +(suspended|active) +normal/);
    await writ(['approvals', 'reject', id]);
  });

  it('lists agents and models (PE-2)', async () => {
    expect((await writ(['agents'])).out[1]).toMatch(/^refund-worker +\S.*get_refund_context/);
    expect((await writ(['models'])).out.join('\n')).toMatch(
      /^sim-auto-1000 .*0\.40 USD +1\.60 USD$/m,
    );
  });
});

describe('writ audit list and show', () => {
  it('find who approved what (SV-8, PE-1)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    await writ(['approvals', 'edit', id, 'amount_usd=700']);
    await writ(['runs', 'watch', runId]);
    const list = (...args: string[]) => writ(['audit', 'list', '--run', runId, ...args]);
    const approvals = await list('--kind', 'approval');
    expect(approvals.out[0]).toMatch(/^RECORD +TIME +KIND +RUN +FACTS$/);
    const decided = approvals.out.find((line) => line.includes('state=approved')) ?? '';
    expect(decided).toMatch(
      / approval .*state=approved approver=developer basis=approved_with_cap$/,
    );
    const number = decided.trim().split(' ')[0] ?? '';
    const { out } = await writ(['audit', 'show', number]);
    expect(out).toContainEqual(expect.stringMatching(/^basis: +approved_with_cap$/));
    expect(out).toContainEqual(expect.stringMatching(/^hash: +[0-9a-f]{64}$/));
    expect((await list('--kind', 'halt')).err).toEqual(['No records.']);
    expect(await writ(['audit', 'show', '99999'])).toMatchObject({
      exit: 2,
      err: ['Record 99999 does not exist.'],
    });
  });
});

it('prints its version and lists every command (PE-2)', async () => {
  expect((await writ(['--version'])).out.join()).toMatch(/^\d+\.\d+\.\d+$/);
  const help = (await writ(['--help'])).out.join('\n');
  for (const name of [
    'run',
    'runs',
    'approvals',
    'agents',
    'models',
    'usage',
    'budgets',
    'pools',
    'halts',
  ]) {
    expect(help).toMatch(new RegExp(`^  ${name} `, 'm'));
  }
  // Ids of requirements mean nothing to a person at a shell.
  expect(help).not.toMatch(/\([A-Z]+-\d+\)/);
});
