import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { verifyExport } from '@writ/audit';
import { AUDIT_CHECKPOINT_SUBJECTS } from '@writ/bus';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { appendAudit } from '../src/store/audit/append-audit.ts';
import { readChainEnd } from '../src/store/audit/read-chain.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { exportLines, headReader } from './audit-export.ts';
import { openSecondStore, SupervisorUnderTest } from './supervisor-under-test.ts';

const SETTINGS = { auditCheckpointRecords: 2, auditPollMs: 20 } as const;

describe('an audit chain that is rolled back in the database', () => {
  let folder: string;
  let supervisor: SupervisorUnderTest;
  /** The access of the attacker: writes to the database, without the signing key. */
  let database: SupervisorStore;
  let checkpoints: HookEvent[];

  const start = async (auditCheckpointFile?: string): Promise<void> => {
    supervisor = await SupervisorUnderTest.start({ config: { ...SETTINGS, auditCheckpointFile } });
    database = await openSecondStore(supervisor);
    checkpoints = [];
    supervisor.bus.subscribeLive({
      subject: AUDIT_CHECKPOINT_SUBJECTS,
      handler: ({ payload }) => void checkpoints.push(fromBinary(HookEventSchema, payload)),
    });
  };
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-checkpoints-'));
  });
  afterEach(async () => {
    await database.close();
    await supervisor.close();
    await rm(folder, { recursive: true, force: true });
  });

  const append = async (tenant: string, count: number, what = 'op'): Promise<void> => {
    for (let n = 1; n <= count; n += 1) {
      const entry = { tenant, kind: 'decision', callId: `${what}-${n}`, facts: {} } as const;
      await database.transaction((trx) => appendAudit(trx, entry, new Date(1_000 * n)));
    }
  };
  const chainOf = (tenant: string) => readChainEnd(database.db, tenant);
  /** Waits until the last checkpoint of a tenant covers `count` records and was published. */
  const signed = async (tenant: string, count: number): Promise<void> =>
    await vi.waitFor(async () => {
      expect(await chainOf(tenant)).toMatchObject({ signed_count: count });
      const published = checkpoints.filter((event) => event.tenant === tenant);
      expect(published.at(-1)?.auditCheckpoint?.count).toBe(BigInt(count));
    });
  /** Appends four records and waits for two checkpoints, which cover two and four records. */
  const signTwice = async (tenant: string): Promise<void> => {
    await append(tenant, 2);
    await signed(tenant, 2);
    await append(tenant, 2, 'later');
    await signed(tenant, 4);
  };
  /** Deletes all records and checkpoints after the first checkpoint, and resets the end of the chain to it. */
  const rollBack = async (tenant: string): Promise<void> =>
    await database.transaction(async (trx) => {
      await trx
        .deleteFrom('audit')
        .where('tenant', '=', tenant)
        .where('sequence', '>', 2)
        .execute();
      await trx
        .deleteFrom('audit_checkpoints')
        .where('tenant', '=', tenant)
        .where('count', '>', 2)
        .execute();
      const { hash } = await trx
        .selectFrom('audit')
        .select('hash')
        .where('tenant', '=', tenant)
        .where('sequence', '=', 2)
        .executeTakeFirstOrThrow();
      const end = { sequence: 2, hash: hash ?? '', signed_count: 2, checkpoints: 1 };
      await trx.updateTable('audit_chains').set(end).where('tenant', '=', tenant).execute();
    });
  const verify = async (lines: readonly string[], jws: string) => {
    const readHead = await headReader(supervisor.config.dataDir);
    return await verifyExport(lines, readHead, {
      published: new Map([['acme', await readHead(jws)]]),
    });
  };

  it('is not signed by the running supervisor, which still signs the chains of other tenants (SV-8)', async () => {
    await start();
    await signTwice('acme');
    await rollBack('acme');
    await expect(exportLines(supervisor)).rejects.toMatchObject({
      reason: 'AUDIT_CHAIN_ROLLED_BACK',
      message: expect.stringMatching(
        /tenant acme has 2 records, but 4 were seen, with checkpoint 2/,
      ),
    });
    // New records are linked but not signed, even after the chain is longer than before the rollback.
    await append('acme', 5, 'forged');
    await append('rivals', 2);
    await signed('rivals', 2);
    await vi.waitFor(async () => expect((await chainOf('acme')).sequence).toBe(7));
    await append('rivals', 2);
    await signed('rivals', 4);
    expect(await chainOf('acme')).toMatchObject({ signed_count: 2, checkpoints: 1 });
    await expect(exportLines(supervisor)).rejects.toMatchObject({
      reason: 'AUDIT_CHAIN_ROLLED_BACK',
    });
    const { records } = await supervisor.as('anna', AuditService).listAuditRecords({});
    expect(records).toHaveLength(7);
    expect((await exportLines(supervisor, 'eve')).length).toBeGreaterThan(4);
  });

  it('is not exported when only checkpoints are missing, and the error reports them (SV-8)', async () => {
    await start();
    await signTwice('acme');
    await database.transaction(async (trx) => {
      await trx
        .deleteFrom('audit_checkpoints')
        .where('tenant', '=', 'acme')
        .where('count', '>', 2)
        .execute();
      const end = { signed_count: 2, checkpoints: 1 };
      await trx.updateTable('audit_chains').set(end).where('tenant', '=', 'acme').execute();
    });
    await expect(exportLines(supervisor)).rejects.toMatchObject({
      reason: 'AUDIT_CHAIN_ROLLED_BACK',
      message: expect.stringMatching(
        /tenant acme lacks checkpoints: it has 1, but 2 were seen; it is not signed\./,
      ),
    });
  });

  it('is detected after a restart with the published checkpoint (SV-8)', async () => {
    await start();
    await signTwice('acme');
    const [, last] = checkpoints.map(({ auditCheckpoint }) => auditCheckpoint);
    expect(last).toMatchObject({ number: 2n, count: 4n });
    const jws = last?.signed ?? '';
    expect(await verify(await exportLines(supervisor), jws)).toMatchObject({ holds: true });
    await supervisor.stop();
    await rollBack('acme');
    await supervisor.restart();
    expect(await verify(await exportLines(supervisor), jws)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(
        /^The chain was rolled back: it ends with record 2, but published checkpoint 2 \(signed at .*\) covers 4 records\.$/,
      ),
    });
    // The signatures of the extended chain are valid, but its record 4 differs from the original record 4.
    await append('acme', 5, 'forged');
    // With these settings, two unsigned records make a checkpoint due, so the seventh record may not be covered yet.
    await vi.waitFor(async () => expect((await chainOf('acme')).signed_count).toBeGreaterThan(5));
    expect(await verify(await exportLines(supervisor), jws)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(
        /record 4 or an earlier record was changed after published checkpoint 2/,
      ),
    });
  });

  it('gets no signature after a restart with the checkpoint file (SV-8)', async () => {
    const file = join(folder, 'checkpoints.jsonl');
    await start(file);
    await signTwice('acme');
    await vi.waitFor(async () =>
      expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(3),
    );
    await supervisor.stop();
    // A crash while the next line was written.
    await writeFile(file, '{"signed":"ey', { flag: 'a' });
    await supervisor.restart();
    expect(await exportLines(supervisor)).toHaveLength(7);
    await supervisor.stop();
    await rollBack('acme');
    await append('acme', 5, 'forged');
    await supervisor.restart();
    await expect(exportLines(supervisor)).rejects.toMatchObject({
      reason: 'AUDIT_CHAIN_ROLLED_BACK',
    });
    expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(3);
    await supervisor.stop();
    await writeFile(file, '{"signed":"eyJ","type":"checkpoint"}\n');
    await expect(supervisor.restart()).rejects.toMatchObject({
      reason: 'INVALID_FILE',
      message: expect.stringMatching(
        /line 1 is not a valid checkpoint; correct WRIT_AUDIT_CHECKPOINT_FILE/,
      ),
    });
  });

  it('gets no signature from a replica that read the checkpoint on the bus (SV-8)', async () => {
    await start();
    await append('acme', 2);
    await signed('acme', 2);
    const replica = await supervisor.startReplica();
    await append('acme', 2, 'later');
    await signed('acme', 4);
    await rollBack('acme');
    const other = supervisor.as('anna', AuditService, replica.edgeAddress);
    await vi.waitFor(() =>
      expect(Array.fromAsync(other.exportAudit({}))).rejects.toMatchObject({
        reason: 'AUDIT_CHAIN_ROLLED_BACK',
        message: expect.stringContaining('4 were seen'),
      }),
    );
  });
});
