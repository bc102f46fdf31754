import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLine } from '@writ/audit';
import { isSmallDiskAvailable, openSmallDisk, type SmallDisk } from '@writ/testing/faults';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CheckpointFile } from '../src/app/audit/checkpoint-file.ts';
import { AuditHarness } from './audit-harness.ts';

/** More checkpoints than a page of the disk has space for. */
const MAX_CHECKPOINTS = 100;

describe.runIf(isSmallDiskAvailable())('the checkpoint file on a full disk', () => {
  let harness: AuditHarness;
  let disk: SmallDisk;
  let path: string;
  beforeEach(async () => {
    harness = await AuditHarness.open();
    disk = openSmallDisk('/tmp', 1);
    path = join(disk.folder, 'checkpoints.jsonl');
  });
  afterEach(async () => {
    disk.close();
    await harness.close();
  });

  it('contains only whole lines, and receives the missing checkpoints with the next one (SV-8, SYS-3)', async () => {
    const checkpointFile = await CheckpointFile.open(path, harness.guard());
    const chainer = harness.chainer('one', { checkpointFile });
    await harness.append('acme', 3);
    await chainer.pass();
    disk.fill();
    // The free space of the last page suffices for some whole lines and for a part of the next line.
    for (let n = 0; (await readFile(path, 'utf8')).endsWith('\n'); n += 1) {
      if (n === MAX_CHECKPOINTS) throw new Error('The disk is not full.');
      await harness.append('acme', 3);
      await chainer.pass();
    }
    disk.free();
    await harness.append('rivals', 3);
    await chainer.pass();
    await checkpointFile.close();

    const again = await CheckpointFile.open(path, harness.guard());
    await again.close();
    const [acme, rivals] = [await harness.chain('acme'), await harness.chain('rivals')];
    const stored = [...acme.checkpoints, ...rivals.checkpoints];
    const lines = stored.map(({ signed }) => `${formatLine({ type: 'checkpoint', signed })}\n`);
    expect(await readFile(path, 'utf8')).toBe(lines.join(''));
  });
});
