import { chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempDir } from '../../test/fixtures.ts';
import { createPrivate, replacePrivate } from './private-file.ts';

const SERVICE = 65_532;
const OTHER = 65_531;

function ownerOf(file: string): { uid: number; gid: number; mode: number } {
  const { uid, gid, mode } = statSync(file);
  return { uid, gid, mode: mode & 0o777 };
}

/** Creates a data folder that belongs to the user of a service; the test process runs as root. */
function dataOfService(): string {
  const dir = join(tempDir(), 'data');
  mkdirSync(dir, { mode: 0o700 });
  chownSync(dir, SERVICE, SERVICE);
  return dir;
}

it.skipIf(process.geteuid?.() !== 0)(
  'keeps the owner of a file that root replaces, so that its service can read it (SYS-3)',
  () => {
    const dir = dataOfService();
    const file = join(dir, 'api-keys.json');
    writeFileSync(file, 'old', { mode: 0o600 });
    chownSync(file, OTHER, SERVICE);
    replacePrivate(file, 'new');
    expect(ownerOf(file)).toEqual({ uid: OTHER, gid: SERVICE, mode: 0o600 });
  },
);

it.skipIf(process.geteuid?.() !== 0)(
  'gives a file and the folders that root creates to the owner of the existing folder (SYS-3)',
  () => {
    const dir = dataOfService();
    createPrivate(join(dir, 'keys/retired/supervisor.jwks.json'), 'key');
    replacePrivate(join(dir, 'api-keys.json'), 'keys');
    const owner = { uid: SERVICE, gid: SERVICE };
    for (const folder of ['keys', 'keys/retired']) {
      expect(ownerOf(join(dir, folder))).toEqual({ ...owner, mode: 0o700 });
    }
    for (const file of ['keys/retired/supervisor.jwks.json', 'api-keys.json']) {
      expect(ownerOf(join(dir, file))).toEqual({ ...owner, mode: 0o600 });
    }
  },
);
