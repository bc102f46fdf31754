import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Debian installs one library per architecture. */
const LIB = '/usr/lib';
const LIBRARY = 'faketime/libfaketime.so.1';

let reported = false;

/**
 * Whether libfaketime is installed. When it is not, reports that once on standard error, or fails with
 * WRIT_REQUIRE_SERVICES=1.
 * @throws Error naming the missing package
 */
export function isFakeClockAvailable(): boolean {
  if (fakeTimeLibrary() !== undefined) return true;
  const missing = 'libfaketime is not installed (Debian: apt-get install libfaketime)';
  if (process.env.WRIT_REQUIRE_SERVICES === '1') throw new Error(`${missing}; tests require it.`);
  if (!reported) process.stderr.write(`skipped: tests with fake clocks, because ${missing}\n`);
  reported = true;
  return false;
}

/** The wall clock of one process, which a test sets; the monotonic clock of the process is not affected. */
export class FakeClock {
  readonly #file: string;
  /** Environment variables of the process. */
  readonly env: Readonly<Record<string, string>>;

  /**
   * @param file path of a file that this clock writes
   * @throws Error when libfaketime is not installed
   */
  constructor(file: string) {
    const library = fakeTimeLibrary();
    if (library === undefined) throw new Error('libfaketime is not installed');
    this.#file = file;
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // File timestamps are not faked.
      NO_FAKE_STAT: '1',
      // Seconds between two readings of the file.
      FAKETIME_CACHE_DURATION: '1',
    };
    this.set(0);
  }

  /** Sets the clock `aheadMs` ahead of the machine's, or behind it when negative; in effect within a second. */
  set(aheadMs: number): void {
    const seconds = aheadMs / 1_000;
    // A process never reads a file that is half written.
    writeFileSync(`${this.#file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function fakeTimeLibrary(): string | undefined {
  const folders = existsSync(LIB) ? readdirSync(LIB).filter((name) => name.includes('linux')) : [];
  return folders.map((name) => join(LIB, name, LIBRARY)).find((file) => existsSync(file));
}
