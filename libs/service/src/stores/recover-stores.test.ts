import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@writ/kernel';
import { readMarker, type StoreMarker, writeMarker } from '@writ/store';
import { expect, it, onTestFinished } from 'vitest';
import { lockDataFolder } from '../data-folder.ts';
import { inspectStores, orderRecovery } from './recover-stores.ts';

const SERVICE = 65_532;
const SEEN: StoreMarker = {
  service: 'supervisor',
  store: 'supervisor.db',
  generation: 'g',
  mark: 7,
  seenAt: '2026-01-01T00:00:00.000Z',
};

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-recover-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

it.skipIf(process.geteuid?.() !== 0)(
  'creates the marker and the locks with the owner of the data folder when root orders a recovery (BD-4)',
  async () => {
    const dataDir = folder();
    chownSync(dataDir, SERVICE, SERVICE);
    const keys = join(dataDir, 'keys');
    const marker = join(keys, 'supervisor.store.json');
    await writeMarker(marker, SEEN);
    const inspected = inspectStores({}, dataDir);
    expect(inspected).toMatchObject([{ service: 'supervisor', finding: 'missing' }]);
    const parts = { dataDir, clock: systemClock, haltId: undefined };
    const haltId = await orderRecovery(inspected, inspected, parts);
    expect(readMarker(marker)).toMatchObject({ ...SEEN, recovery: { haltId } });
    const locks = join(dataDir, 'locks');
    for (const path of [keys, marker, locks, join(locks, 'supervisor.lock')]) {
      expect(statSync(path), path).toMatchObject({ uid: SERVICE, gid: SERVICE });
    }
  },
);

it('recognizes a PostgreSQL database from its marker, even without its URL, and does not read it (BD-4)', async () => {
  const dataDir = folder();
  const file = join(dataDir, 'keys', 'supervisor.store.json');
  await writeMarker(file, { ...SEEN, store: 'schema supervisor' });
  expect(inspectStores({}, dataDir)).toMatchObject([{ finding: 'unread', mark: undefined }]);
});

it('orders the recovery of a PostgreSQL database without a writable data folder (BD-4)', async () => {
  const markers = folder();
  // Even root cannot create a folder below a file; in Kubernetes the data folder is mounted read-only.
  const dataDir = join(markers, 'file');
  writeFileSync(dataDir, '');
  const file = join(markers, 'supervisor.store.json');
  await writeMarker(file, { ...SEEN, store: 'schema supervisor' });
  const inspected = inspectStores({ WRIT_STORE_MARKER_DIR: markers }, dataDir);
  const parts = { dataDir, clock: systemClock, haltId: undefined };
  const haltId = await orderRecovery(inspected, inspected, parts);
  expect(readMarker(file)).toMatchObject({ recovery: { haltId } });
});

it('locks the data folder only for the services with a SQLite file (BD-4, SYS-5)', async () => {
  const dataDir = folder();
  const fileOf = (service: string) => join(dataDir, 'keys', `${service}.store.json`);
  await writeMarker(fileOf('supervisor'), { ...SEEN, store: 'schema supervisor' });
  await writeMarker(fileOf('tool-gateway'), { ...SEEN, service: 'tool-gateway' });
  const inspected = inspectStores({}, dataDir);
  expect(inspected).toMatchObject([{ finding: 'unread' }, { finding: 'missing' }]);
  const parts = { dataDir, clock: systemClock, haltId: undefined };
  const supervisor = await lockDataFolder(dataDir, ['supervisor']);
  await orderRecovery(inspected, inspected, parts);
  supervisor.release();
  const gateway = await lockDataFolder(dataDir, ['tool-gateway']);
  onTestFinished(() => gateway.release());
  await expect(orderRecovery(inspected, inspected, parts)).rejects.toMatchObject({
    reason: 'DATA_FOLDER_LOCKED',
  });
});
