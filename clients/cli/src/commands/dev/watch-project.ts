import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fieldsOf, InvalidRequestError } from '@writ/kernel';

const POLL_MS = 300;
const WATCHED = /\.(ya?ml|[cm]?[jt]s|json)$|^\.env$/;
/**
 * Names of files and folders that are not watched: npm writes them, or the platform does not read them. Hidden files
 * except .env are not watched either.
 */
const SKIPPED = new Set(['node_modules', 'test', 'package-lock.json']);

/**
 * Yields the paths, relative to the project, of YAML, JSON, JavaScript and TypeScript files and `.env` files that have
 * changed since this call. Changes are yielded once two successive polls find the same state, because until then an
 * editor may still be writing. The files are polled because change notifications differ between operating systems and
 * mounts.
 * @param dataDir absolute path of the data folder; it is not watched, because each start of the platform writes to it
 * @throws InvalidRequestError INVALID_FILE if the data folder is the project
 */
export function watchProject(
  folder: string,
  dataDir: string,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  const watched = { folder: realPathOf(folder), dataDir: realPathOf(dataDir) };
  if (watched.folder === watched.dataDir)
    throw new InvalidRequestError(
      'INVALID_FILE',
      `The data folder ${dataDir} is the project folder. Set --data or WRIT_DATA to another folder, such as .writ.`,
      { file: dataDir },
    );
  return changesSince(stateOf(watched), watched, signal);
}

/** The folders, as paths without symbolic links. */
interface Watched {
  readonly folder: string;
  readonly dataDir: string;
}

/** Returns the path without symbolic links; if it does not exist, resolves its nearest existing parent. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (fieldsOf(error).code !== 'ENOENT') throw error;
    return join(realPathOf(dirname(path)), basename(path));
  }
}

async function* changesSince(
  first: State,
  watched: Watched,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  let given = first;
  let found = given;
  while (!signal.aborted) {
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    const now = stateOf(watched);
    const isSettled = differences(found, now).length === 0;
    found = now;
    const changed = differences(given, now);
    if (signal.aborted || !isSettled || changed.length === 0) continue;
    given = now;
    yield changed;
  }
}

type State = ReadonlyMap<string, string>;

function stateOf(watched: Watched, path = '', state = new Map<string, string>()): State {
  const { folder, dataDir } = watched;
  for (const entry of entriesOf(join(folder, path))) {
    if (SKIPPED.has(entry.name) || (entry.name.startsWith('.') && entry.name !== '.env')) continue;
    const file = join(path, entry.name);
    if (entry.isDirectory()) {
      if (join(folder, file) !== dataDir) stateOf(watched, file, state);
    } else if (WATCHED.test(entry.name)) {
      const found = statSync(join(folder, file), { throwIfNoEntry: false });
      if (found !== undefined) state.set(file, `${found.mtimeMs} ${found.size}`);
    }
  }
  return state;
}

/** Returns the entries of a folder; none if it was deleted during the poll. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (fieldsOf(error).code === 'ENOENT') return [];
    throw error;
  }
}

function differences(before: State, after: State): string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((file) => before.get(file) !== after.get(file))
    .sort();
}
