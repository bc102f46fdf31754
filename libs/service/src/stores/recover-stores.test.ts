import { chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@writ/kernel';
import { readMarker, type StoreMarker, writeMarker } from '@writ/store';
import { expect, it, onTestFinished } from 'vitest';
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
  'leaves the marker and the locks to the owner of the data folder when root orders a recovery (BD-4)',
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
