import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { START, useTestCommands } from './test-commands.ts';

const { platform, writ, detached, pending } = useTestCommands();

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
  it('follows a run to its end with the same output as npm start, and uses the development key (PE-2)', async () => {
    const { exit, out, err } = await writ([...START, 'sim-auto-1000', '--label', 'case=7']);
    expect({ exit, err }).toEqual({ exit: 0, err: [] });
    expect(out[0]).toMatch(/^run run_\w+ {3}trace \w+$/);
    expect(out.join('\n')).toMatch(
      /proposes {2}get_refund_context [\s\S]+executed {2}by tool-gateway/,
    );
    expect(out.at(-1)).toMatch(/^success: 4 steps, \d+ tokens, [\d.]+ USD$/);
  });

  it('exits on Ctrl-C while the run continues (PE-2)', async () => {
    const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
    const { edgeUrl: WRIT_ADDRESS } = platform().platform;
    const child = spawn(process.execPath, [main, ...START, 'sim-escalate-1200'], {
      env: { ...process.env, WRIT_ADDRESS, WRIT_DATA: platform().dataDir },
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

  it('exits with code 1 if the run does not succeed, and prints events as JSON lines (PE-2)', async () => {
    const { exit, out } = await writ([...START, 'sim-unknown-tool', '-o', 'json']);
    expect(exit).toBe(1);
    const events = out.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, at) => at + 1));
    expect(events.at(-1)).toHaveProperty('result.status', 'RUN_STATUS_STOPPED');
  });

  it('names the invalid argument and starts no run (SYS-3)', async () => {
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

  it('filters by several states, and lists the valid states for an unknown state (PE-2)', async () => {
    const list = (...states: string[]) =>
      writ(['runs', 'list', ...states.flatMap((state) => ['--state', state])]);
    const { exit, out } = await list('Waiting-for-input', 'completed');
    expect(exit).toBe(0);
    expect(out.length).toBeGreaterThan(1);
    expect(await list('completed', 'complete')).toEqual({
      exit: 2,
      out: [],
      err: [expect.stringMatching(/^--state must be one of .*, completed, .*, not "complete"\.$/)],
    });
  });

  it('reports that more runs exist (PE-2)', async () => {
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

  it('distinguishes an unknown run, a wrong key and an unreachable platform (SYS-3)', async () => {
    expect(await writ(['runs', 'get', 'run-0'])).toMatchObject({
      exit: 2,
      err: ['Run run-0 does not exist.'],
    });
    const [key = ''] = (await writ(['runs', 'list'], { WRIT_API_KEY: 'wrong' })).err;
    expect(key).toContain('The API key is not valid. Set WRIT_API_KEY');
    const [closed = ''] = (await writ(['runs', 'list'], { WRIT_ADDRESS: '127.0.0.1:1' })).err;
    expect(closed).toBe(
      'No server responds at 127.0.0.1:1. Is Writ running there? Set --address or WRIT_ADDRESS to the address of its public API.',
    );
    const [remote = ''] = (await writ(['runs', 'list'], { WRIT_ADDRESS: 'writ.example' })).err;
    expect(remote).toContain('WRIT_API_KEY is not set');
    const [ftp = ''] = (await writ(['runs', 'list', '--address', 'ftp://127.0.0.1'])).err;
    expect(ftp).toContain('must be host:port, or a URL that begins with http:// or https://');
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
  // The help text contains no requirement ids.
  expect(help).not.toMatch(/\([A-Z]+-\d+\)/);
});
