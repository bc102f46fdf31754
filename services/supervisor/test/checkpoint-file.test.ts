import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLine, parseLine } from '@writ/audit';
import { createVerifier, openSigner, trustSigners, type Verifier } from '@writ/identity';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CheckpointFile } from '../src/app/audit/checkpoint-file.ts';
import { AuditHarness } from './audit-harness.ts';

const HOUR_MS = 60 * 60_000;

describe('the checkpoint file', () => {
  let harness: AuditHarness;
  let path: string;
  const opened: CheckpointFile[] = [];
  beforeEach(async () => {
    harness = await AuditHarness.open();
    path = join(harness.dataDir, 'checkpoints.jsonl');
  });
  afterEach(async () => {
    for (const file of opened.splice(0)) await file.close();
    await harness.close();
  });

  const openFile = async (verifier = harness.verifier): Promise<CheckpointFile> => {
    const file = await CheckpointFile.open(path, harness.guard(harness.store, verifier));
    opened.push(file);
    return file;
  };
  /** Checks that the file is valid, and returns its checkpoints. */
  const written = async (): Promise<string[]> => {
    await openFile();
    const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1).map(parseLine);
    return lines.map((line) =>
      typeof line === 'string' || line.type === 'record' ? '' : line.signed,
    );
  };
  /** Returns the stored checkpoints as JWS: the checkpoints of acme, then the checkpoints of rivals. */
  const stored = async (): Promise<string[]> => {
    const [acme, rivals] = [await harness.chain('acme'), await harness.chain('rivals')];
    return [...acme.checkpoints, ...rivals.checkpoints].map(({ signed }) => signed);
  };

  it('receives missing checkpoints at the start, even for tenants without new records (SV-8)', async () => {
    const first = harness.chainer('one', { checkpointFile: await openFile() });
    await harness.append('acme', 3);
    await first.pass();
    // Simulates a crash between the commit of a checkpoint and the write of its line, or a checkpoint that another
    // replica signed.
    await harness.append('acme', 3);
    await harness.append('rivals', 3);
    await harness.chainer('one').pass();
    expect(await written()).toHaveLength(1);

    const second = harness.chainer('one', { checkpointFile: await openFile() });
    await second.pass();
    const lines = await readFile(path, 'utf8');
    await second.pass();
    expect(await readFile(path, 'utf8')).toBe(lines);
    expect(await stored()).toHaveLength(3);
    expect(await written()).toEqual(await stored());
  });

  it('is read by verifying only the checkpoint of each tenant that covers the most records (SV-8)', async () => {
    const chainer = harness.chainer('one', { checkpointFile: await openFile() });
    for (const tenant of ['acme', 'rivals', 'acme', 'acme']) {
      await harness.append(tenant, 3);
      await chainer.pass();
    }
    const [first = '', second = '', last = '', other = ''] = await stored();
    const verified: string[] = [];
    const verifier: Verifier = {
      verify: async (kind, token, options) => {
        verified.push(token);
        return await harness.verifier.verify(kind, token, options);
      },
    };
    for (const signed of [
      [first, other, second, last],
      // An older checkpoint that follows must not hide a rollback.
      [last, first, second, other],
    ]) {
      const lines = signed.map((each) => `${formatLine({ type: 'checkpoint', signed: each })}\n`);
      await writeFile(path, lines.join(''));
      const file = await openFile(verifier);
      expect(verified.splice(0).toSorted()).toEqual([last, other].toSorted());
      expect([file.lastCount('acme'), file.lastCount('rivals')]).toEqual([9, 3]);
    }
  });

  it('is not reported to have an invalid signature while the keys are unavailable (SV-8, SYS-3)', async () => {
    await harness.append('acme', 3);
    await harness.chainer('one', { checkpointFile: await openFile() }).pass();
    const keyDir = join(harness.dataDir, 'other-keys');
    const other = await openSigner({ service: 'tool-gateway', keyDir, clock: harness.clock });
    const { clock } = harness;
    const withoutKeys = createVerifier({ trust: trustSigners(other), clock });
    await expect(openFile(withoutKeys)).rejects.toMatchObject({ reason: 'KEYS_UNAVAILABLE' });
    const early = new ManualClock(new Date(clock.now().getTime() - HOUR_MS));
    const slow = createVerifier({ trust: trustSigners(harness.signer), clock: early });
    await expect(openFile(slow)).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { check: 'iat' },
    });
    const newKeys = join(harness.dataDir, 'new-keys');
    const forger = await openSigner({ service: 'supervisor', keyDir: newKeys, clock });
    const foreign = createVerifier({ trust: trustSigners(forger), clock });
    await expect(openFile(foreign)).rejects.toMatchObject({
      reason: 'INVALID_FILE',
      message: expect.stringContaining('line 1 is not a valid checkpoint'),
    });
  });
});
