import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const SOURCE = resolve(import.meta.dirname, '../src');
const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of the two programs to its end, without a terminal. */
async function run(
  program: 'demo.ts' | 'main.ts',
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-demo-test-'));
  const child: ChildProcess = spawn(process.execPath, [join(SOURCE, program), ...args], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      WRIT_DATA: dataDir,
      ...FREE_PORTS,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  return { code: code as number | null, stdout, stderr };
}

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

  it('caps refunds at 800 without a terminal, and prints it (SV-5)', async () => {
    const { code, stdout, stderr } = await run('demo.ts', []);
    expect(stderr).toContain('capped at 800 USD');
    expect(stdout).toContain('approved_with_cap:800');
    expect(code).toBe(0);
  });

  it('prints why an answer was rejected, and exits with 2 (SV-5, SYS-3)', async () => {
    const { code, stderr } = await run('demo.ts', ['--json', '--human', 'cap:900']);
    expect(stderr).toMatch(/amount_usd 900 exceeds .*cap of 800/);
    expect(code).toBe(2);
  });

  it.each([
    [['--script', 'nope'], 'there is auto-1000'],
    [['--example', 'nope'], 'refund-desk, research-team'],
    [['--human', 'maybe'], 'approve, reject, cap:USD or ask'],
    [['--nope'], 'the options are --json'],
  ])('lists the valid values instead of %j (SYS-3)', async (args, sentence) => {
    const { code, stdout, stderr } = await run('demo.ts', args);
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('calls the provider of the environment instead of the simulator (EM-6)', async () => {
    const unreachable = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_TIMEOUT_SECONDS: '1' };
    const { code, stdout } = await run('demo.ts', ['--json'], unreachable);
    expect(JSON.parse(stdout)).toMatchObject({ stop_reason: 'llm_timeout' });
    expect(code).toBe(1);
  });
});

describe('npm start', () => {
  it('starts no run with --no-demo (SYS-5)', async () => {
    const { code, stdout } = await run('main.ts', ['--no-demo', '--exit']);
    expect(stdout).toContain('public    http://127.0.0.1:');
    expect(stdout).not.toContain('proposes');
    expect(code).toBe(0);
  });
});
