import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

let told = false;

/** The nats-server to start: what WRIT_NATS_SERVER names, else the one on the path; undefined for none. */
export function natsBinary(): string | undefined {
  const named = process.env.WRIT_NATS_SERVER;
  if (named !== undefined && named !== '') return named;
  // Debian puts servers where only root looks for programs.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, 'nats-server')).find(isProgram);
}

/**
 * Whether tests can have a NATS server here. Where they cannot, it says so once; with
 * WRIT_REQUIRE_SERVICES=1 that is a failure.
 * @throws Error naming the package that is missing
 */
export function isNatsAvailable(): boolean {
  if (natsBinary() !== undefined) return true;
  const missing = 'nats-server is not installed (Debian: apt-get install nats-server)';
  if (process.env.WRIT_REQUIRE_SERVICES === '1') throw new Error(`${missing}; tests need it.`);
  // stderr, since the reporter keeps the console of tests that pass to itself.
  if (!told) process.stderr.write(`skipped: what runs on NATS, since ${missing}\n`);
  told = true;
  return false;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
