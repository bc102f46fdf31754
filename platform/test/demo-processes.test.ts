import { describe, expect, it } from 'vitest';
import { run } from './program.ts';

describe('npm run demo', () => {
  it('prints one JSON object and exits with 0 when the run succeeded (SYS-5, SV-7)', async () => {
    const { code, stdout } = await run('demo.ts', ['--json', '--human', 'cap:800']);
    const result = JSON.parse(stdout);
    expect(Object.keys(result)).toEqual(
      expect.arrayContaining(['run_id', 'trace_id', 'status', 'stop_reason', 'answer', 'trace']),
    );
    expect(result).toMatchObject({ status: 'ok', stop_reason: 'success' });
    expect(result.trace_id).toMatch(/^[0-9a-f]{32}$/);
    expect(code).toBe(0);
  });

  it('exits with 1 and prints the stop reason when the run was stopped (SV-7)', async () => {
    const { code, stdout } = await run('demo.ts', ['--json', '--script', 'early-final']);
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'stopped',
      stop_reason: 'supervisor_block:final_requires_context',
    });
    expect(code).toBe(1);
  });

  it('simulates the person without a terminal, and records it as demo:simulated (SV-5)', async () => {
    const { code, stdout, stderr } = await run('demo.ts', ['--json']);
    expect(stderr).toContain(
      'The person of the demo is simulated (capped at 800 USD) and recorded as demo:simulated.',
    );
    const { history } = JSON.parse(stdout) as {
      history: { human_approval?: { approved: boolean; decided_by: string } }[];
    };
    const decided = history.flatMap(({ human_approval: human }) => human ?? []);
    expect(decided).toMatchObject([{ approved: true, decided_by: 'demo:simulated' }]);
    expect(code).toBe(0);
  });

  it('prints no notice about a simulated person if no approval is requested (PE-2)', async () => {
    const { code, stdout } = await run('main.ts', ['--exit', '--example', 'nightly-flow']);
    expect(stdout).not.toContain('simulated (');
    expect(code).toBe(0);
  });

  it('prints help and version instead of starting (SYS-3)', async () => {
    const help = await run('demo.ts', ['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('Usage: npm run demo -- [options]');
    expect(help.stdout).toContain('--human WHO');
    expect(await run('main.ts', ['--version'])).toEqual({
      code: 0,
      stdout: 'writ 0.1.0\n',
      stderr: '',
    });
  });

  it('prints why an answer was rejected, and exits with 2 (SV-5, SYS-3)', async () => {
    const { code, stderr } = await run('demo.ts', ['--json', '--human', 'cap:900']);
    expect(stderr).toMatch(/amount_usd 900 exceeds .*cap of 800/);
    expect(code).toBe(2);
  });

  it.each([
    [['--script', 'nope'], 'Scripts of refund-desk: auto-1000'],
    [['--example', 'nope'], 'refund-desk, research-team'],
    [['--human', 'maybe'], 'approve, reject, cap:USD or ask'],
    [['--human', 'cap:-5'], '--human cap must be greater than zero.'],
    [['--nope'], 'the options are --json'],
  ])('rejects %j with one line that names the valid values (SYS-3)', async (args, sentence) => {
    const { code, stdout, stderr } = await run('demo.ts', args);
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('calls the provider in the environment, and prints its address if it is unreachable (EM-6, SV-7)', async () => {
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_TIMEOUT_SECONDS: '1' };
    const sentence =
      /^Model refund-desk could not be reached at http:\/\/127\.0\.0\.1:1, or the connection was lost \(\d attempts\)\.$/m;
    const json = await run('demo.ts', ['--json'], { env });
    expect(JSON.parse(json.stdout)).toMatchObject({
      stop_reason: 'llm_timeout',
      detail: expect.stringMatching(sentence),
    });
    expect(json.code).toBe(1);
    const live = await run('main.ts', ['--exit'], { env });
    expect(live.stdout).toMatch(sentence);
    expect(live.code).toBe(1);
  });
});

describe('npm start', () => {
  it('starts no run with --no-demo, and prints no hints with --exit (SYS-5)', async () => {
    const { code, stdout } = await run('main.ts', ['--no-demo', '--exit']);
    expect(stdout).toContain('public    http://127.0.0.1:');
    expect(stdout).not.toMatch(/proposes|API key|Start a run|Ctrl-C/);
    expect(code).toBe(0);
  });

  it('explains each invalid answer and prompts again (SV-5, PE-2)', async () => {
    const answers = ['yes', '', '$700', '700,50', '700.555', 'a', '900', '700'];
    const { code, stdout, stderr } = await run('main.ts', ['--exit', '--human', 'ask'], {
      input: `${answers.join('\n')}\n`,
    });
    const asked = stderr.split('\n').map((line) => line.trim());
    const question = 'approve with an amount_usd of at most 800, your cap, or reject (r)?';
    expect(asked.filter((line) => line.startsWith(question))).toEqual(
      answers.map((answer) => `${question} ${answer}`.trim()),
    );
    expect(stdout).toContain("amount_usd 900 exceeds developer's cap of 800 USD");
    expect(stdout).toMatch(/approved .* by developer/);
    expect(code).toBe(0);
  });
});
