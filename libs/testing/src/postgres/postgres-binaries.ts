import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

// Debian and its relatives keep the programs of each version apart, and off the path.
const DEBIAN = '/usr/lib/postgresql';

/** The folder with PostgreSQL's own programs, when this machine has one. */
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
