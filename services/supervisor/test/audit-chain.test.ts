import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { formatLine, linkHash } from '@writ/audit';
import { type JsonObject, ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { signChain } from '../src/app/audit/sign-checkpoints.ts';
import { holdLease } from '../src/store/audit/lease.ts';
import { verifyWith } from './audit-export.ts';
import { AuditHarness, Crash, crashingAt } from './audit-harness.ts';

const PROGRAM = fileURLToPath(new URL('./audit-child.ts', import.meta.url));
const TENANTS = ['acme', 'rivals'] as const;
const HOUR_MS = 60 * 60_000;
const LEEWAY_MS = 60_000;

describe('the audit chainer', () => {
  let harness: AuditHarness;
  beforeEach(async () => {
    harness = await AuditHarness.open();
  });
  afterEach(() => harness.close());

  /** Checks that a tenant's chain is complete, in order and signed at its checkpoints. */
  const assertSound = async (tenant: string, records: number): Promise<void> => {
    const { end, records: chain, checkpoints } = await harness.chain(tenant);
    expect(chain.map(({ sequence }) => sequence)).toEqual(chain.map((_, n) => n + 1));
    expect(end).toMatchObject({ sequence: records, signed_count: checkpoints.at(-1)?.count ?? 0 });
    expect(end.hash).toBe(chain.at(-1)?.hash);
    for (const { previous_hash, canonical_json, hash } of chain) {
      expect(linkHash(previous_hash, canonical_json)).toBe(hash);
    }
    const lines = chain.flatMap((row) => {
      const { sequence, previous_hash: previousHash, hash } = row;
      const record = JSON.parse(row.canonical_json) as JsonObject;
      const signed = checkpoints.filter(({ count }) => count === sequence);
      return [
        formatLine({ type: 'record', sequence, previousHash, hash, record }),
        ...signed.map((checkpoint) =>
          formatLine({ type: 'checkpoint', signed: checkpoint.signed }),
        ),
      ];
    });
    const head = formatLine({ type: 'head', signed: await signChain(harness.signer, end, true) });
    expect(await verifyWith(harness.dataDir, [...lines, head])).toMatchObject({
      holds: true,
      tenant,
      records,
      checkpoints: checkpoints.length,
    });
  };

  it('leaves neither a gap nor a fork after a crash at any point (SV-8)', async () => {
    let crashes = 0;
    const appended = { acme: 0, rivals: 0 };
    for (let n = 0; n < 100; n += 1) {
      for (const tenant of TENANTS) {
        await harness.append(tenant, 1 + (n % 4));
        appended[tenant] += 1 + (n % 4);
      }
      try {
        await harness.chainer('one', { store: crashingAt(harness.store, n % 25) }).pass();
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        crashes += 1;
      }
      if (n % 25 !== 24) continue;
      await harness.chainer('one').pass();
      for (const tenant of TENANTS) await assertSound(tenant, appended[tenant]);
    }
    expect(crashes).toBeGreaterThan(50);
  });

  it('does not link while another replica holds the lease, nor after it has lost its lease (SV-8)', async () => {
    const [one, two] = [harness.chainer('one'), harness.chainer('two')];
    await harness.append('acme', 5);
    await Promise.all([one.pass(), two.pass(), one.pass(), two.pass()]);
    await assertSound('acme', 5);
    // The first replica holds the lease, and the other one waits.
    await harness.append('acme', 1);
    await two.pass();
    await one.pass();
    await assertSound('acme', 6);
    harness.clock.advance(5_001);
    await harness.append('acme', 3);
    await two.pass();
    await harness.append('acme', 1);
    await one.pass();
    expect((await harness.chain('acme')).end.sequence).toBe(9);
    await two.pass();
    await assertSound('acme', 10);
  });

  it('releases its lease when it stops, so that another replica can link at once (SV-8)', async () => {
    const one = harness.chainer('one');
    one.start();
    await harness.append('acme', 1);
    await expect
      .poll(async () => (await harness.chain('acme')).end.sequence, { interval: 2 })
      .toBe(1);
    await one.stop();
    await harness.append('acme', 1);
    await harness.chainer('two').pass();
    await assertSound('acme', 2);
  });

  it('links records after commits, and signs checkpoints by count and by time (SV-8)', async () => {
    const one = harness.chainer('one');
    one.start();
    await harness.append('acme', 3);
    const signed = async () => (await harness.chain('acme')).checkpoints.at(-1)?.count;
    await expect.poll(signed, { interval: 2 }).toBe(3);
    await harness.append('acme', 1);
    await expect
      .poll(async () => (await harness.chain('acme')).end.sequence, { interval: 2 })
      .toBe(4);
    expect(await signed()).toBe(3);
    harness.clock.advance(60_000);
    await expect.poll(signed, { interval: 2 }).toBe(4);
    await one.stop();
    await assertSound('acme', 4);
  });

  it('signs no checkpoint before its clock is confirmed (SV-8, BD-3)', async () => {
    harness.isClockConfirmed = false;
    await harness.append('acme', 3);
    await harness.chainer('one').pass();
    const before = await harness.chain('acme');
    expect(before.end.sequence).toBe(3);
    expect(before.checkpoints).toEqual([]);
    harness.isClockConfirmed = true;
    await harness.chainer('one').pass();
    expect((await harness.chain('acme')).checkpoints.map(({ count }) => count)).toEqual([3]);
  });

  it.each([
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ])(
    'continues while a replica whose clock is far %s holds the lease, without a fork (SV-8, BD-3)',
    async (_, skewMs) => {
      const clock = new ManualClock(new Date(harness.clock.now().getTime() + skewMs));
      // The replica has just started and has not compared its clock with the clocks of its peers.
      const wrong = harness.chainer('wrong', { clock, isClockConfirmed: () => false });
      const right = harness.chainer('right');
      await harness.append('acme', 2);
      await harness.append('rivals', 1);
      await wrong.pass();
      expect((await harness.chain('acme')).end).toMatchObject({ sequence: 2, signed_count: 0 });
      await harness.append('acme', 1);
      await right.pass();
      expect((await harness.chain('acme')).end).toMatchObject({ sequence: 3, signed_count: 3 });
      for (let n = 0; n < 10; n += 1) {
        await harness.append('acme', 1);
        await Promise.all([right.pass(), wrong.pass(), wrong.pass(), right.pass()]);
      }
      harness.clock.advance(60_000);
      await right.pass();
      await assertSound('acme', 13);
      expect((await harness.chain('rivals')).checkpoints).toHaveLength(1);
    },
  );

  it('keeps the lease of a replica whose clock is ahead within the leeway (SV-8, BD-3)', async () => {
    const clock = new ManualClock(new Date(harness.clock.now().getTime() + LEEWAY_MS));
    await harness.append('acme', 1);
    await harness.chainer('ahead', { clock }).pass();
    await harness.append('acme', 1);
    await harness.chainer('other').pass();
    expect((await harness.chain('acme')).end.sequence).toBe(1);
    harness.clock.advance(LEEWAY_MS + 5_000);
    await harness.chainer('other').pass();
    await assertSound('acme', 2);
  });

  it('neither links nor signs while its clock is skewed (SV-8, BD-3)', async () => {
    let isSkewed = true;
    const skewed = harness.chainer('skewed', {
      isClockSkewed: () => isSkewed,
      isClockConfirmed: () => !isSkewed,
    });
    await harness.append('acme', 3);
    await skewed.pass();
    expect((await harness.chain('acme')).end.sequence).toBe(0);
    isSkewed = false;
    await skewed.pass();
    await assertSound('acme', 3);
  });

  it('delays a review by at most one small batch (SV-8)', async () => {
    await harness.append('acme', 300);
    const pass = harness.chainer('one').pass();
    let between = 0;
    while ((await harness.chain('acme')).end.sequence < 300) {
      // Each of these transactions waits for at most one batch of 32.
      await harness.store.transaction((trx) =>
        holdLease(trx, { name: 'a-review', holder: 'x', ttlMs: 1 }, harness.clock.now()),
      );
      between += 1;
    }
    await pass;
    expect(between).toBeGreaterThanOrEqual(3);
    await assertSound('acme', 300);
  });

  it('continues after repeated kills without losing an acknowledged record (SV-8)', async () => {
    let acknowledged = 0;
    for (const killAfter of [40, 120]) {
      const child: ChildProcess = spawn(process.execPath, [PROGRAM, harness.dataDir], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exited = once(child, 'exit');
      if (child.stdout === null) throw new Error('The child has no output.');
      let lines = 0;
      for await (const _line of createInterface(child.stdout)) {
        lines += 1;
        if (lines === killAfter) child.kill('SIGKILL');
      }
      expect(await exited).toEqual([null, 'SIGKILL']);
      acknowledged += lines;
    }
    harness.clock.advance(5_001);
    await harness.chainer('after').pass();
    const { end } = await harness.chain('acme');
    expect(end.sequence).toBeGreaterThanOrEqual(acknowledged);
    expect(end.signed_count).toBeGreaterThan(0);
    await assertSound('acme', end.sequence);
  });
});
