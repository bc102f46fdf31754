import { newId } from '@writ/kernel';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

/** Runs a command line; returns its exit code and output. */
async function writ(args: readonly string[], changes: Readonly<Record<string, string>> = {}) {
  const { edgeUrl: WRIT_ADDRESS, apiKey: WRIT_API_KEY } = test.platform;
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(args, {
    env: { WRIT_ADDRESS, WRIT_API_KEY, WRIT_DATA: test.dataDir, ...changes },
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

async function start(): Promise<string> {
  const { run } = await test.client.runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: 'Refund it.',
    model: 'sim-auto-1000',
  });
  return run?.runId ?? '';
}

const REASON = ['--reason', 'Refunds look wrong.'];
const haltId = ([line = '']: readonly string[]) => line.split(' ')[0] ?? '';

describe('writ halts', () => {
  it.each([
    ['a run', async () => ['--run', await start()]],
    ['a tenant', async () => ['--tenant', 'default']],
    ['everything', async () => ['--everything', '--end-runs']],
  ])('halts %s, lists the halt and lifts it (SV-9)', async (_, scope) => {
    const halted = await writ(['halts', 'create', ...(await scope()), ...REASON]);
    expect(halted).toMatchObject({ exit: 0, err: [] });
    expect(halted.out[0]).toMatch(
      /^hlt_\S+ {2}in force .* by developer at .*Refunds look wrong\.$/,
    );
    const id = haltId(halted.out);
    const inForce = await writ(['halts', 'list', '--in-force']);
    // Indented lines name the calls that are still in flight.
    expect(
      inForce.out.filter((line) => !line.startsWith(' ')).map((line) => haltId([line])),
    ).toEqual([id]);
    const resumed = await writ(['halts', 'lift', id]);
    expect(resumed.exit).toBe(0);
    expect(resumed.out[0]).toContain('resumed, lifted by developer');
    const listed = await writ(['halts', 'list', '-o', 'json']);
    expect(JSON.parse(listed.out.join('\n')).halts[0]).toMatchObject({
      haltId: id,
      reason: REASON[1],
    });
    expect((await writ(['halts', 'list', '--in-force'])).out).toEqual([]);
    expect((await writ(['halts', 'list'])).out[0]).toContain(id);
  });

  it('halts one agent of a run (SV-9)', async () => {
    const runId = await start();
    const { run } = await test.client.runs.getRun({ runId });
    const agent = run?.agent?.instance ?? '';
    const halted = await writ(['halts', 'create', '--run', runId, '--agent', agent, ...REASON]);
    expect(halted.out[0]).toContain(`agent default/${runId}/${agent}`);
    expect((await writ(['halts', 'lift', haltId(halted.out)])).exit).toBe(0);
  });

  it('rejects missing and invalid options and unknown ids, and creates no halt (SYS-3)', async () => {
    const wrong = [
      ['halts', 'create', ...REASON],
      ['halts', 'create', '--agent', 'a', ...REASON],
      ['halts', 'create', '--everything', '--tenant', 'default', ...REASON],
      ['halts', 'create', '--tenant', 'default'],
      ['halts', 'create', '--run', 'run-0', ...REASON],
      ['halts', 'lift', 'hlt-0'],
    ];
    for (const args of wrong) {
      const { exit, out, err } = await writ(args);
      expect({ exit, out }, args.join(' ')).toEqual({ exit: 2, out: [] });
      expect(err.join(' ')).toMatch(/--\w+|Run run-0 does not exist|hlt-0 does not exist/);
    }
    expect((await writ(['halts', 'list', '--in-force'])).out).toEqual([]);
  });
});

describe('writ keys', () => {
  it('creates a key, lists it without its secret, and revokes it without a restart (SYS-6)', async () => {
    const created = await writ([
      'keys',
      'create',
      ...['--tenant', 'acme', '--subject', 'ada', '--role', 'caller', 'admin'],
    ]);
    expect(created.exit).toBe(0);
    // The message names the key file, because the command may run in a folder other than that of the platform.
    expect(created.err.join()).toMatch(
      /The platform that reads \/\S+\/api-keys\.json accepts it\.$/,
    );
    const [key = ''] = created.out;
    const halts = () => writ(['halts', 'list'], { WRIT_API_KEY: key });
    expect((await halts()).exit).toBe(0);
    const { out } = await writ(['keys', 'list']);
    const line = out.find((one) => one.includes('acme')) ?? '';
    expect(line).toContain('ada  caller,admin');
    expect(out.join()).not.toContain(key);
    expect((await writ(['keys', 'revoke', line.split(' ')[0] ?? ''])).exit).toBe(0);
    await expect
      .poll(async () => (await halts()).err.join(), { interval: 20, timeout: 30_000 })
      .toContain('API key is not valid');
    expect((await writ(['keys', 'revoke', 'unknown'])).exit).toBe(1);
  });

  it('creates a key for an external agent, which has no permissions on the public API (AP-1)', async () => {
    const create = ['keys', 'create', '--tenant', 'acme', '--subject', 'bot', '--role', 'agent'];
    const unbound = await writ(create);
    expect(unbound.err.join()).toContain('The role agent requires the name of one agent');
    expect(unbound.exit).not.toBe(0);
    const { out, exit } = await writ([...create, '--agent', 'support-bot']);
    expect(exit).toBe(0);
    const [key = ''] = out;
    expect((await writ(['keys', 'list'])).out.join('\n')).toContain('bot  agent:support-bot');
    const refused = await writ(['halts', 'list'], { WRIT_API_KEY: key });
    expect(refused.err.join()).toContain('requires the role');
    expect(refused.exit).not.toBe(0);
  });

  it('rejects an unknown role (SYS-3)', async () => {
    const { exit, err } = await writ([
      'keys',
      'create',
      ...['--tenant', 'acme', '--subject', 'ada', '--role', 'root'],
    ]);
    expect(exit).toBe(2);
    expect(err.join()).toContain('caller, approver, auditor, admin, operator');
  });
});
