import { join } from 'node:path';
import { ConfigError, MAX_INTERVAL_MS, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { isLoopback } from '@writ/rpc';
import { type DatabaseLimits, readDatabaseLimits } from './database-limits.ts';
import { variableName } from './names.ts';

/** Location of the store marker, which detects a database that went back in time (BD-4). */
interface ServiceMarkerLocation {
  readonly file: string;
  readonly everyMs: number;
}

/** The database of a service; has the shape of `StoreLocation`. */
export type ServiceStoreLocation =
  | {
      readonly dialect: 'sqlite';
      readonly file: string;
      readonly marker: ServiceMarkerLocation;
    }
  | {
      readonly dialect: 'postgres';
      readonly marker: ServiceMarkerLocation;
      readonly url: string;
      readonly schema: string;
      readonly limits: DatabaseLimits;
    };

/**
 * Reads the database of `service`: the schema `WRIT_<SERVICE>_DATABASE_SCHEMA` of the PostgreSQL database
 * `WRIT_<SERVICE>_DATABASE_URL`, or a SQLite file in `dataDir` if no database is set.
 * @throws ConfigError naming the variable, never its value
 */
export function readStoreLocation(
  env: NodeJS.ProcessEnv,
  service: ServiceName,
  dataDir: string,
): ServiceStoreLocation {
  const name = variableName(service, 'DATABASE_URL');
  const { url, schema, markerDir, everyMs } = readEnv(env, {
    url: variable.url(name, {
      optional: true,
      protocols: ['postgres', 'postgresql'],
      secret: true,
      example: 'postgres://user@127.0.0.1:5432/writ',
      about: 'the PostgreSQL database of the service; default: a SQLite file in WRIT_DATA',
    }),
    schema: variable.string(variableName(service, 'DATABASE_SCHEMA'), {
      default: service.replaceAll('-', '_'),
      pattern: /^[a-z][a-z0-9_]{0,62}$/,
      about: 'the schema of the service in its PostgreSQL database',
    }),
    markerDir: variable.string('WRIT_STORE_MARKER_DIR', {
      optional: true,
      about:
        'the directory of the store markers, which detect an older copy of a database; default: keys in WRIT_DATA',
    }),
    everyMs: variable.duration('WRIT_STORE_MARKER_EVERY', {
      default: 5_000,
      min: 100,
      max: MAX_INTERVAL_MS,
      about: 'how often the store marker of a database in use is updated',
    }),
  });
  const marker = { file: markerFile(markerDir ?? join(dataDir, 'keys'), service), everyMs };
  if (url === undefined) return { dialect: 'sqlite', file: join(dataDir, `${service}.db`), marker };
  refuseUnverifiedTls(name, new URL(url));
  return { dialect: 'postgres', url, schema, limits: readDatabaseLimits(env, service), marker };
}

/** Returns the path of the marker file of a service. */
function markerFile(folder: string, service: ServiceName): string {
  return join(folder, `${service}.store.json`);
}

/**
 * Rejects sslmode values other than disable and verify-full: depending on the version of the driver, they trust any
 * server or fall back to cleartext. Without sslmode the driver uses PGSSLMODE or cleartext, so it may be omitted only
 * for a database on this machine. Also rejects the parameters `ssl` and `uselibpqcompat`.
 */
function refuseUnverifiedTls(name: string, { hostname, searchParams: parameters }: URL): void {
  const mode = parameters.get('sslmode');
  const host = hostname.replace(/^\[|\]$/g, '');
  const isHere = isLoopback(host) && !parameters.has('host');
  const isExact = mode === null ? isHere : mode === 'disable' || mode === 'verify-full';
  if (isExact && !parameters.has('ssl') && !parameters.has('uselibpqcompat')) return;
  throw new ConfigError('The environment', [
    `${name} must have sslmode=verify-full, with sslrootcert naming the file of the certificate authority, or sslmode=disable.`,
  ]);
}
