import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock, UnavailableError } from '@writ/kernel';
import {
  advanceMark,
  appendOutbox,
  initialMigration,
  type OutboxDatabase,
  openStore,
  outboxTable,
  readMarker,
  type Store,
  type StoreLocation,
  writeMarker,
} from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MarkKeeper } from './mark-keeper.ts';

const { log } = createTelemetry({ service: 'test', logLevel: 'silent' });
const migrations = initialMigration([outboxTable]);

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-marks-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Returns the location of a new database with a marker in a separate folder. */
async function location(place: string, everyMs = 600_000) {
  const dir = folder();
  const marker = { file: join(dir, 'keys', 'test.store.json'), everyMs };
  const at: StoreLocation =
    place === 'PostgreSQL'
      ? await postgresLocation()
      : { dialect: 'sqlite', file: join(dir, 'test.db') };
  return { ...at, marker };
}

async function open(at: Awaited<ReturnType<typeof location>>) {
  const store = await openStore<OutboxDatabase>({ location: at, migrations, service: 'test' });
  const keeper = new MarkKeeper(store, {
    service: 'supervisor',
    label: 'test.db',
    location: at.marker,
    log,
    clock: systemClock,
  });
  const close = async () => {
    await keeper.stop();
    await store.close();
  };
  return { store, keeper, close };
}

let events = 0;
async function write(store: Store<OutboxDatabase>): Promise<void> {
  events += 1;
  const message = { eventId: `e-${events}`, subject: 's', payload: new Uint8Array() };
  await store.transaction(async (trx) => appendOutbox(trx, message, systemClock.now()));
}

/** Opens, marks and closes a store. */
async function use(at: Awaited<ReturnType<typeof location>>): Promise<void> {
  const { store, keeper, close } = await open(at);
  await keeper.open();
  await write(store);
  await close();
}

/** Delays the next file that this process syncs; later files are not delayed. */
async function delayedWrite() {
  const handle = await openFile(join(folder(), 'file'), 'w');
  await handle.close();
  const files = Object.getPrototypeOf(handle) as FileHandle;
  const begun = Promise.withResolvers<void>();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  vi.spyOn(files, 'sync').mockImplementationOnce(async () => {
    begun.resolve();
    await promise;
  });
  return { begun: begun.promise, end };
}

/** Resets a database to an earlier mark, as restoring an older copy does. */
async function setBack(at: Awaited<ReturnType<typeof location>>, by: number): Promise<void> {
  const { marker: _, ...unmarked } = at;
  const store = await openStore({ location: unmarked, migrations, service: 'test' });
  await advanceMark(store, ({ generation, mark }) => ({ generation, mark: mark - by }));
  await store.close();
}

const PLACES = ['a file', ...(isPostgresAvailable() ? ['PostgreSQL'] : [])];

describe.each(PLACES)('a store with a marker in %s', (place) => {
  it('opens again after a clean stop, a crash and the loss of its marker (BD-4)', async () => {
    const at = await location(place);
    await use(at);
    const first = readMarker(at.marker.file);
    await use(at);
    expect(readMarker(at.marker.file)?.mark).toBeGreaterThan(first?.mark ?? Infinity);
    // Simulates a crash after the mark was raised in the database and before the file was written.
    if (first !== undefined) await writeMarker(at.marker.file, first);
    await use(at);
    // Simulates an upgrade from a release that wrote no marker.
    rmSync(at.marker.file);
    await use(at);
  });

  it('is marked at the start, and at the stop only if it was written to (BD-4)', async () => {
    const at = await location(place);
    await use(at);
    const first = await open(at);
    await first.keeper.open();
    const started = readMarker(at.marker.file);
    await first.close();
    expect(readMarker(at.marker.file)).toEqual(started);
    const second = await open(at);
    await second.keeper.open();
    await write(second.store);
    await second.close();
    expect(readMarker(at.marker.file)?.mark).toBe((started?.mark ?? Infinity) + 2);
  });

  it('is refused after it went back in time, and opens with a recovery order (BD-4)', async () => {
    const at = await location(place);
    await use(at);
    await use(at);
    const seen = readMarker(at.marker.file);
    await setBack(at, 2);
    await expect(open(at)).rejects.toMatchObject({
      reason: 'STORE_BEHIND',
      message: expect.stringMatching(/went back in time: it is at mark \d+, but .* `writ recover`/),
    });
    if (seen === undefined) throw new Error('There is no marker.');
    const recovery = { haltId: 'hlt_1', orderedAt: seen.seenAt };
    await writeMarker(at.marker.file, { ...seen, recovery });
    const { keeper, close } = await open(at);
    const onRecovery = vi.fn(async () => undefined);
    await keeper.open(onRecovery);
    expect(onRecovery).toHaveBeenCalledWith(expect.anything(), recovery);
    await close();
    const after = readMarker(at.marker.file);
    expect(after?.recovery).toBeUndefined();
    expect(after?.generation).not.toBe(seen.generation);
    expect(after?.mark).toBeGreaterThan(seen.mark);
    await use(at);
    // After a crash between the recovery and the write of its marker, the order is carried out again.
    await writeMarker(at.marker.file, { ...seen, recovery });
    await use(at);
  });

  it('keeps a recovery order that is written while the store is in use, until the next start (BD-4)', async () => {
    const at = await location(place);
    const { store, keeper, close } = await open(at);
    await keeper.open();
    const seen = readMarker(at.marker.file);
    if (seen === undefined) throw new Error('There is no marker.');
    const recovery = { haltId: 'hlt_1', orderedAt: seen.seenAt };
    await writeMarker(at.marker.file, { ...seen, recovery });
    await write(store);
    await close();
    expect(readMarker(at.marker.file)).toMatchObject({ mark: seen.mark + 1, recovery });
    const next = await open(at);
    const onRecovery = vi.fn(async () => undefined);
    await next.keeper.open(onRecovery);
    expect(onRecovery).toHaveBeenCalledWith(expect.anything(), recovery);
    await next.close();
    expect(readMarker(at.marker.file)?.recovery).toBeUndefined();
  });

  it('keeps a recovery order that is given while it writes the marker (BD-4)', async () => {
    const at = await location(place);
    const { store, keeper, close } = await open(at);
    await keeper.open();
    const seen = readMarker(at.marker.file);
    if (seen === undefined) throw new Error('There is no marker.');
    await write(store);
    const written = await delayedWrite();
    const closed = close();
    await written.begun;
    // A service with a PostgreSQL database does not lock its folder.
    const recovery = { haltId: 'hlt_1', orderedAt: seen.seenAt };
    await writeMarker(at.marker.file, { ...seen, recovery });
    written.end();
    await closed;
    expect(readMarker(at.marker.file)).toMatchObject({ mark: seen.mark + 1, recovery });
  });

  it('keeps a recovery order that is given while it carries out another one (BD-4)', async () => {
    const at = await location(place);
    await use(at);
    const seen = readMarker(at.marker.file);
    if (seen === undefined) throw new Error('There is no marker.');
    const first = { haltId: 'hlt_1', orderedAt: seen.seenAt };
    const later = { haltId: 'hlt_2', orderedAt: seen.seenAt };
    await writeMarker(at.marker.file, { ...seen, recovery: first });
    const { keeper, close } = await open(at);
    await keeper.open(() => writeMarker(at.marker.file, { ...seen, recovery: later }));
    await close();
    expect(readMarker(at.marker.file)?.recovery).toEqual(later);
  });

  it('reports once that the store was reset to an earlier state while in use (BD-4)', async () => {
    const at = await location(place, 10);
    const { store, keeper, close } = await open(at);
    await keeper.open();
    const onBehind = vi.fn();
    keeper.start(onBehind);
    await write(store);
    await vi.waitFor(() => expect(readMarker(at.marker.file)?.mark).toBeGreaterThan(1));
    expect(onBehind).not.toHaveBeenCalled();
    await setBack(at, 1);
    await write(store);
    await vi.waitFor(() => expect(onBehind).toHaveBeenCalledTimes(1));
    // A mark that was in progress when the store was reset may have been written to the file.
    const seen = readMarker(at.marker.file);
    expect(seen?.mark).toBeGreaterThan(1);
    await close();
    expect(onBehind).toHaveBeenCalledTimes(1);
    expect(readMarker(at.marker.file)).toEqual(seen);
    // The marks of the running service do not hide the reset from the next start.
    await expect(open(at)).rejects.toMatchObject({ reason: 'STORE_BEHIND' });
  });

  it('is refused when another database is in its place (BD-4)', async () => {
    const at = await location(place);
    await use(at);
    const other = await location(place);
    await use(other);
    copyFileSync(at.marker.file, other.marker.file);
    await expect(open(other)).rejects.toMatchObject({
      reason: 'STORE_BEHIND',
      message: expect.stringMatching(/is not the one that supervisor used at/),
    });
  });

  it('logs that a failed mark is retried, except at the stop (BD-4)', async () => {
    const { store, keeper } = await open(await location(place, 10));
    await keeper.open();
    await write(store);
    const error = new UnavailableError('STORE_COMMIT_FAILED', 'The disk has failed.');
    vi.spyOn(store, 'transaction').mockRejectedValue(error);
    const warn = vi.spyOn(log, 'warn');
    keeper.start(() => undefined);
    await vi.waitFor(() => {
      expect(warn).toHaveBeenLastCalledWith(
        { err: error },
        'failed to mark the database; retrying',
      );
    });
    await keeper.stop();
    expect(warn).toHaveBeenLastCalledWith(
      { err: error },
      'failed to mark the database at the stop',
    );
    await store.close();
  });

  it('works when its marker cannot be written (BD-4)', async () => {
    const at = await location(place);
    const blocked = { ...at, marker: { ...at.marker, file: join(folder(), 'file', 'x') } };
    writeFileSync(join(blocked.marker.file, '..'), '');
    await use(blocked);
  });

  it.each(['at the start', 'later'] as const)(
    'has a marker after it could not be written %s, even if there is no other commit (BD-4)',
    async (when) => {
      const at = await location(place, 10);
      const { store, keeper, close } = await open(at);
      if (when === 'later') await keeper.open();
      const keys = dirname(at.marker.file);
      rmSync(keys, { recursive: true, force: true });
      writeFileSync(keys, '');
      const warn = vi.spyOn(log, 'warn');
      const refused = 'store marker cannot be written; a database that goes back in time is not';
      if (when === 'later') await write(store);
      else await keeper.open();
      keeper.start(() => undefined);
      await vi.waitFor(() =>
        expect(warn).toHaveBeenLastCalledWith(expect.anything(), expect.stringContaining(refused)),
      );
      rmSync(keys);
      await vi.waitFor(() => expect(readMarker(at.marker.file)).toBeDefined());
      await close();
    },
  );
});

describe('a file with a marker', () => {
  it.each([
    ['missing', (file: string) => rmSync(file)],
    ['empty', (file: string) => truncateSync(file, 0)],
  ])('is refused when it is %s, and not created again (BD-4)', async (what, damage) => {
    const at = await location('a file');
    await use(at);
    const { file } = at as { readonly file: string };
    damage(file);
    await expect(open(at)).rejects.toMatchObject({
      reason: 'STORE_EMPTIED',
      message: expect.stringContaining(`${file}, the database of supervisor, is ${what}`),
    });
    await expect(open(at)).rejects.toMatchObject({ reason: 'STORE_EMPTIED' });
    expect(existsSync(`${file}-wal`)).toBe(false);
  });

  it('is refused when its write-ahead log is torn before the last mark (BD-4)', async () => {
    const at = await location('a file');
    await use(at);
    const { store, keeper, close } = await open(at);
    await keeper.open();
    await write(store);
    const { file } = at as { readonly file: string };
    // Copies the files in the state in which a crash would leave them.
    const crashed = await location('a file');
    const { file: copy } = crashed as { readonly file: string };
    for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${copy}${end}`);
    await close();
    const seen = readMarker(at.marker.file);
    if (seen === undefined) throw new Error('There is no marker.');
    await writeMarker(crashed.marker.file, { ...seen, mark: seen.mark - 1 });
    truncateSync(`${copy}-wal`, 1_000);
    await expect(open(crashed)).rejects.toMatchObject({ reason: 'STORE_BEHIND' });
  });

  it('is refused when its tables are missing (BD-4)', async () => {
    const at = await location('a file');
    await use(at);
    const { file } = at as { readonly file: string };
    const bare = await openStore({
      location: { dialect: 'sqlite', file: `${file}.bare` },
      migrations: {},
      service: 'test',
    });
    await bare.close();
    copyFileSync(`${file}.bare`, file);
    await expect(open(at)).rejects.toMatchObject({ reason: 'STORE_EMPTIED' });
  });

  it('has an intact marker after replicas wrote it at the same time (BD-4)', async () => {
    const at = await location('a file');
    await use(at);
    const seen = readMarker(at.marker.file);
    if (seen === undefined) throw new Error('There is no marker.');
    const marks = Array.from({ length: 20 }, (_, n) => seen.mark + n);
    await Promise.all(marks.map((mark) => writeMarker(at.marker.file, { ...seen, mark })));
    expect(marks).toContain(readMarker(at.marker.file)?.mark);
  });

  it('is refused when its marker cannot be read (BD-4)', async () => {
    const at = await location('a file');
    await use(at);
    writeFileSync(at.marker.file, '{"mark":');
    await expect(open(at)).rejects.toMatchObject({
      reason: 'INVALID_FILE',
      message: expect.stringContaining(at.marker.file),
    });
  });
});
