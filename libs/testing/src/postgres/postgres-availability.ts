import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

// Debian installs the programs of each version in a folder of its own that is not on the PATH.
const DEBIAN = '/usr/lib/postgresql';

let reported = false;

/**
 * Whether PostgreSQL is installed. When it is not, reports that once on standard error, or fails with
 * WRIT_REQUIRE_SERVICES=1.
 * @throws Error naming the missing package
 */
export function isPostgresAvailable(): boolean {
  if (postgresBinaries() !== undefined) return true;
  const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql)';
  if (process.env.WRIT_REQUIRE_SERVICES === '1') throw new Error(`${missing}; tests require it.`);
  // The reporter hides the console output of tests that pass, but not standard error.
  if (!reported) process.stderr.write(`skipped: tests that use PostgreSQL, because ${missing}\n`);
  reported = true;
  return false;
}

/** Returns the folder with PostgreSQL's server programs, or undefined when it is not installed. */
export function postgresBinaries(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort(byNumber).reverse() : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  return folders.find((folder) =>
    ['initdb', 'postgres'].every((program) => existsSync(join(folder, program))),
  );
}

function byNumber(a: string, b: string): number {
  return Number(a) - Number(b);
}
