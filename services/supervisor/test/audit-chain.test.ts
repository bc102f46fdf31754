import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { formatLine, linkHash } from '@writ/audit';
import type { JsonObject } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { signChain } from '../src/app/audit/audit-chainer.ts';
import { holdLease } from '../src/store/audit-chain/lease.ts';
import { AuditDesk, Crash, crashingAt } from './audit-desk.ts';
import { verifyWith } from './audit-export.ts';

const PROGRAM = fileURLToPath(new URL('./audit-child.ts', import.meta.url));
const TENANTS = ['acme', 'rivals'] as const;

describe('the audit chainer', () => {
  let desk: AuditDesk;
  beforeEach(async () => {
    desk = await AuditDesk.open();
  });
  afterEach(() => desk.close());

  /** Whether a tenant's chain is whole, in the order of its records and signed where it says so. */
  const assertSound = async (tenant: string, records: number): Promise<void> => {
    const { end, records: chain, checkpoints } = await desk.chain(tenant);
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
    const head = formatLine({ type: 'head', signed: await signChain(desk.signer, end, true) });
    expect(await verifyWith(desk.dataDir, [...lines, head])).toMatchObject({
      holds: true,
      tenant,
      records,
      checkpoints: checkpoints.length,
    });
  };

  it('leaves neither gap nor fork wherever it crashes (SV-8)', async () => {
    let crashes = 0;
    const appended = { acme: 0, rivals: 0 };
    for (let n = 0; n < 100; n += 1) {
      for (const tenant of TENANTS) {
        await desk.append(tenant, 1 + (n % 4));
        appended[tenant] += 1 + (n % 4);
      }
      try {
        await desk.chainer('one', crashingAt(desk.store, n % 25)).pass();
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        crashes += 1;
      }
      if (n % 25 !== 24) continue;
      await desk.chainer('one').pass();
      for (const tenant of TENANTS) await assertSound(tenant, appended[tenant]);
    }
    expect(crashes).toBeGreaterThan(60);
  });

  it('does not link beside another one that holds the lease, nor after it was overtaken (SV-8)', async () => {
    const [one, two] = [desk.chainer('one'), desk.chainer('two')];
    await desk.append('acme', 5);
    await Promise.all([one.pass(), two.pass(), one.pass(), two.pass()]);
    await assertSound('acme', 5);
    // Whoever came first holds it; the other one waits.
    await desk.append('acme', 1);
    await two.pass();
    await one.pass();
    await assertSound('acme', 6);
    desk.clock.advance(5_001);
    await desk.append('acme', 3);
    await two.pass();
    await desk.append('acme', 1);
    await one.pass();
    expect((await desk.chain('acme')).end.sequence).toBe(9);
    await two.pass();
    await assertSound('acme', 10);
  });

  it('gives its lease back when it stops, so that another one goes on at once (SV-8)', async () => {
    const one = desk.chainer('one');
    one.start();
    await desk.append('acme', 1);
    await expect.poll(async () => (await desk.chain('acme')).end.sequence, { interval: 2 }).toBe(1);
    await one.stop();
    await desk.append('acme', 1);
    await desk.chainer('two').pass();
    await assertSound('acme', 2);
  });

  it('is woken by commits and signs by number and by time (SV-8)', async () => {
    const one = desk.chainer('one');
    one.start();
    await desk.append('acme', 3);
    const signed = async () => (await desk.chain('acme')).checkpoints.at(-1)?.count;
    await expect.poll(signed, { interval: 2 }).toBe(3);
    await desk.append('acme', 1);
    await expect.poll(async () => (await desk.chain('acme')).end.sequence, { interval: 2 }).toBe(4);
    expect(await signed()).toBe(3);
    desk.clock.advance(60_000);
    await expect.poll(signed, { interval: 2 }).toBe(4);
    await one.stop();
    await assertSound('acme', 4);
  });

  it('holds up no review for longer than a small batch takes (SV-8)', async () => {
    await desk.append('acme', 300);
    const pass = desk.chainer('one').pass();
    let between = 0;
    while ((await desk.chain('acme')).end.sequence < 300) {
      // Each of these waits for at most one batch of 32.
      await desk.store.transaction((trx) =>
        holdLease(trx, { name: 'a-review', holder: 'x', ttlMs: 1 }, desk.clock.now()),
      );
      between += 1;
    }
    await pass;
    expect(between).toBeGreaterThanOrEqual(3);
    await assertSound('acme', 300);
  });

  it('goes on where a killed process was, again and again (SV-8)', async () => {
    let acknowledged = 0;
    for (const enough of [40, 120]) {
      const child: ChildProcess = spawn(process.execPath, [PROGRAM, desk.dataDir], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exited = once(child, 'exit');
      if (child.stdout === null) throw new Error('The child has no output.');
      let heard = 0;
      for await (const _line of createInterface(child.stdout)) {
        heard += 1;
        if (heard === enough) child.kill('SIGKILL');
      }
      expect(await exited).toEqual([null, 'SIGKILL']);
      acknowledged += heard;
    }
    desk.clock.advance(5_001);
    await desk.chainer('after').pass();
    const { end } = await desk.chain('acme');
    expect(end.sequence).toBeGreaterThanOrEqual(acknowledged);
    expect(end.signed_count).toBeGreaterThan(0);
    await assertSound('acme', end.sequence);
  });
});
