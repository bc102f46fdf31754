import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHAIN_START, formatLine, linkHash } from '@writ/audit';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { formatPublicKeys, mintCheckpoint, openSigner, type Signer } from '@writ/identity';
import { canonicalJson, ManualClock } from '@writ/kernel';
import { startTestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';
import { EXIT } from '../src/io.ts';

describe('writ audit', () => {
  let folder: string;
  let signer: Signer;
  const at = (name: string) => join(folder, name);

  /** Runs a command line; returns its output and exit code. */
  const writ = async (line: string, variables: Readonly<Record<string, string>> = {}) => {
    // Overrides the default data folder, which may contain the API key of a platform that runs in the checkout.
    const env = { WRIT_DATA: folder, ...variables };
    const [out, err]: [string[], string[]] = [[], []];
    const print = (text: string) => void out.push(text);
    const exit = await runCli(line.split(' '), { env, print, warn: (text) => void err.push(text) });
    return { exit, out: out.join('\n'), err: err.join('\n') };
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-cli-'));
    const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
    signer = await openSigner({ service: 'supervisor', keyDir: at('keys'), clock });
    await writeFile(at('keys.json'), formatPublicKeys(signer.publicKeys()));
    await writeFile(at('export.jsonl'), (await chain()).map((line) => `${line}\n`).join(''));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const chain = async (records = 5, approver = 'Zoë\u2028'): Promise<string[]> => {
    const lines: string[] = [];
    let hash = CHAIN_START;
    for (let sequence = 1; sequence <= records; sequence += 1) {
      const record = { tenant: 'acme', kind: 'decision', approver };
      const previousHash = hash;
      hash = linkHash(previousHash, canonicalJson(record));
      lines.push(formatLine({ type: 'record', sequence, previousHash, hash, record }));
    }
    const claims = { tenant: 'acme', count: BigInt(records), headHash: hash, previousCount: 0n };
    const { token } = await mintCheckpoint(signer, { ...claims, closesExport: true });
    return [...lines, formatLine({ type: 'head', signed: token })];
  };

  it('verifies an export with the public keys and prints a summary (SV-8)', async () => {
    for (const keys of ['keys.json', 'keys/supervisor.jwks.json']) {
      expect(await writ(`audit verify ${at('export.jsonl')} --keys ${at(keys)}`)).toEqual({
        exit: EXIT.success,
        out: 'The chain of tenant acme is valid: 5 records, 1 to 5, 0 checkpoints, head signed at 2026-01-01T12:00:00.000Z.',
        err: '',
      });
    }
    const [jwk] = (JSON.parse(await readFile(at('keys.json'), 'utf8')) as { keys: object[] }).keys;
    await writeFile(at('key.json'), JSON.stringify(jwk));
    const single = await writ(`audit verify ${at('export.jsonl')} --key ${at('key.json')}`);
    expect(single.exit).toBe(EXIT.success);
  });

  it('reports the first error in one sentence and exits with 1 (SV-8)', async () => {
    const lines = await chain();
    const bytes = Buffer.from(lines.join('\n'));
    const notText = Buffer.from(bytes);
    notText[notText.indexOf('Zo') + 2] = 0xff;
    const cases: readonly (readonly [string | Buffer, RegExp, string?])[] = [
      [lines.toSpliced(2, 1).join('\n'), /^Line 3: record 3 is missing before record 4\.$/],
      [bytes.toString().replace('Zoë', 'Zoe'), /^Line 1: record 1 was changed/],
      [notText, /^Line 1: the line is not JSON/],
      [lines.slice(0, 4).join('\n'), /^The export ends after record 4 without a signed head/],
      [
        bytes,
        /^Line 1: record 1 belongs to tenant acme, but the chain belongs to tenant rivals\.$/,
        '--tenant rivals',
      ],
      [bytes, /^Line 1: record 1 is out of order/, '--after 2'],
    ];
    for (const [content, sentence, options = '--after 0'] of cases) {
      await writeFile(at('changed.jsonl'), content);
      const result = await writ(
        `audit verify ${at('changed.jsonl')} --keys ${at('keys.json')} ${options}`,
      );
      expect(result).toMatchObject({ exit: EXIT.failure, out: expect.stringMatching(sentence) });
    }
  });

  it('compares with an earlier export of the same chain (SV-8)', async () => {
    const verify = `audit verify ${at('export.jsonl')} --keys ${at('keys.json')} --continues`;
    await writeFile(at('earlier.jsonl'), (await chain(3)).join('\n'));
    expect(await writ(`${verify} ${at('earlier.jsonl')}`)).toMatchObject({ exit: EXIT.success });
    await writeFile(at('earlier.jsonl'), (await chain(3, 'Eve')).join('\n'));
    expect(await writ(`${verify} ${at('earlier.jsonl')}`)).toMatchObject({
      exit: EXIT.failure,
      out: 'Line 3: record 3 or an earlier record was changed after the earlier export.',
    });
    await writeFile(at('earlier.jsonl'), (await chain(7)).join('\n'));
    expect((await writ(`${verify} ${at('earlier.jsonl')}`)).exit).toBe(EXIT.failure);
    expect(await writ(`${verify} ${at('keys.json')}`)).toMatchObject({ exit: EXIT.error });
  });

  it('compares the export with published checkpoints, from a file of lines or a single JWS (SV-8)', async () => {
    const lines = await chain(5);
    const hashes = lines.slice(0, 5).map((line) => (JSON.parse(line) as { hash: string }).hash);
    const checkpoint = async (count: number, checkpointNumber: number): Promise<string> => {
      const headHash = hashes[count - 1] ?? 'f'.repeat(64);
      const claims = { tenant: 'acme', count: BigInt(count), headHash, previousCount: 0n };
      const numbered = { ...claims, checkpointNumber: BigInt(checkpointNumber) };
      return (await mintCheckpoint(signer, numbered)).token;
    };
    const lineOf = (signed: string) => `${formatLine({ type: 'checkpoint', signed })}\n`;
    const verify = async (content: string, options = '') => {
      await writeFile(at('published'), content);
      const keys = `--keys ${at('keys.json')}`;
      return await writ(
        `audit verify ${at('export.jsonl')} ${keys} --checkpoint ${at('published')}${options}`,
      );
    };
    const [first, second] = [await checkpoint(2, 0), await checkpoint(4, 0)];
    expect(await verify(second)).toMatchObject({ exit: EXIT.success });
    const numbered = [await checkpoint(2, 1), await checkpoint(7, 2), await checkpoint(4, 2)];
    const [one = '', seven = '', four = ''] = numbered.map(lineOf);
    expect(await verify(one + seven)).toMatchObject({
      exit: EXIT.failure,
      out: expect.stringMatching(
        /^The chain was rolled back: it ends with record 5, but published checkpoint 2 \(signed at/,
      ),
    });
    expect(await verify(one + seven + four)).toMatchObject({
      exit: EXIT.failure,
      out: expect.stringMatching(
        /^Line 3 of .*: checkpoint 2 over 4 records follows checkpoint 2 over 7 records/,
      ),
    });
    // A duplicate line is accepted.
    expect(await verify(lineOf(second).repeat(2))).toMatchObject({ exit: EXIT.success });
    expect(await verify(one + four + one)).toMatchObject({
      exit: EXIT.failure,
      out: expect.stringMatching(/^Line 3 of .*: the chain of tenant acme was rolled back\.$/),
    });
    expect(await verify(first, ' --after 5')).toMatchObject({ exit: EXIT.failure });
    const other = await mintCheckpoint(signer, {
      tenant: 'rivals',
      count: 1n,
      headHash: hashes[0] ?? '',
    });
    expect(await verify(lineOf(other.token))).toMatchObject({
      exit: EXIT.error,
      out: '',
      err: expect.stringContaining('has no checkpoint of tenant acme'),
    });
    expect(await verify('{}')).toMatchObject({
      exit: EXIT.error,
      err: expect.stringMatching(/Line 1 of .* is not a checkpoint/),
    });
    const [head = ''] = (await chain()).slice(-1);
    expect(await verify(head)).toMatchObject({
      exit: EXIT.error,
      err: expect.stringMatching(/Line 1 of .* is the head of an export, not a checkpoint/),
    });
  });

  it('reports a signature by another key (SV-8)', async () => {
    const { clock } = signer;
    const other = await openSigner({ service: 'supervisor', keyDir: at('other'), clock });
    await writeFile(at('other.json'), formatPublicKeys(other.publicKeys()));
    const result = await writ(`audit verify ${at('export.jsonl')} --keys ${at('other.json')}`);
    expect(result.exit).toBe(EXIT.failure);
    expect(result.out).toMatch(
      /^Line 6: the head after record 5 is invalid: .* does not have its key/,
    );
  });

  it('exits with 2 when the export cannot be verified (SYS-4)', async () => {
    const file = at('export.jsonl');
    for (const [line, sentence] of [
      [`audit verify ${file}`, '--keys'],
      [`audit verify ${file} --keys ${file}`, 'The public keys are invalid'],
      [`audit verify ${at('none')} --keys ${at('keys.json')}`, 'no such file'],
      [`audit verify ${file} --keys ${at('keys.json')} --after x`, '--after must be'],
      ['audit export', 'WRIT_API_KEY'],
      ['audit keys --supervisor 127.0.0.1:1', '127.0.0.1:1'],
    ] as const) {
      const { exit, err } = await writ(line);
      expect([exit, err]).toEqual([EXIT.error, expect.stringContaining(sentence)]);
    }
  });

  it('names the setting of the supervisor address if the supervisor does not respond (SYS-3)', async () => {
    const { exit, err } = await writ('audit keys --supervisor 127.0.0.1:1');
    expect(exit).toBe(EXIT.error);
    expect(err).toMatch(/127\.0\.0\.1:1.*Set --supervisor or WRIT_SUPERVISOR_ADDRESS/);
    expect(err).not.toContain('WRIT_ADDRESS');
  });

  it('exports from a platform and fetches the public keys (SV-8)', async () => {
    const test = await startTestPlatform({ env: { WRIT_AUDIT_CHECKPOINT_RECORDS: '3' } });
    try {
      const { edgeUrl, apiKey, addresses } = test.platform;
      const env = { WRIT_ADDRESS: edgeUrl, WRIT_API_KEY: apiKey };
      const agent = 'refund-worker';
      const goal = 'Refund 250 USD to user 42, who was charged twice.';
      const run = test.client.runs.runAgent({ start: { requestId: 'r-1', agent, goal } });
      for await (const { event } of run) {
        const entry = event?.entry;
        const type = entry?.case === 'hook' ? entry.value.type : undefined;
        if (type === HookEventType.APPROVAL_REQUESTED) break;
      }
      const keys = await writ(`audit keys --supervisor ${addresses.supervisor}`);
      expect(keys.exit).toBe(EXIT.success);
      await writeFile(at('live-keys.json'), keys.out);
      expect(await writ(`audit export ${at('live.jsonl')}`, env)).toMatchObject({
        exit: EXIT.success,
        err: '',
      });
      const printed = await writ('audit export', env);
      const verdict = await writ(
        `audit verify ${at('live.jsonl')} --keys ${at('live-keys.json')} --tenant default`,
      );
      expect(verdict).toMatchObject({ exit: EXIT.success, err: '' });
      const [records] = /\d+(?= records)/.exec(verdict.out) ?? [];
      expect(Number(records)).toBeGreaterThan(3);
      expect(
        printed.out.split('\n').filter((line) => line.endsWith('"type":"record"}')),
      ).toHaveLength(Number(records));
      const nowhere = await writ(`audit export ${at('no/such/folder')}`, env);
      expect(nowhere).toMatchObject({ exit: EXIT.error, err: expect.stringContaining('ENOENT') });
      expect(await writ(`audit export --after 2`, env)).toMatchObject({ exit: EXIT.success });
    } finally {
      await test.close();
    }
  });
});
