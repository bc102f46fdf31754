import { join } from 'node:path';
import { ConfigError, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { type DatabaseBounds, readDatabaseBounds } from './database-bounds.ts';
import { variableName } from './names.ts';

/** Where a service keeps its state, with the shape of `StoreLocation`. */
export type ServiceStoreLocation =
  | { readonly dialect: 'sqlite'; readonly file: string }
  | {
      readonly dialect: 'postgres';
      readonly url: string;
      readonly schema: string;
      readonly bounds: DatabaseBounds;
    };

/**
 * Where `service` keeps its state: in the PostgreSQL database of `WRIT_<SERVICE>_DATABASE_URL`, in the
 * schema of `WRIT_<SERVICE>_DATABASE_SCHEMA`, or, when no database is set, in a SQLite file in `dataDir`.
 * @throws ConfigError naming the variable, never its value
 */
export function readStoreLocation(
  env: NodeJS.ProcessEnv,
  service: ServiceName,
  dataDir: string,
): ServiceStoreLocation {
  const name = variableName(service, 'DATABASE_URL');
  const { url, schema } = readEnv(env, {
    url: variable.url(name, {
      optional: true,
      protocols: ['postgres', 'postgresql'],
      secret: true,
      example: 'postgres://user@127.0.0.1:5432/writ',
      about: 'the PostgreSQL database that keeps its state',
    }),
    schema: variable.string(variableName(service, 'DATABASE_SCHEMA'), {
      default: service.replaceAll('-', '_'),
      pattern: /^[a-z][a-z0-9_]{0,62}$/,
      about: 'the schema there that is its own',
    }),
  });
  if (url === undefined) return { dialect: 'sqlite', file: join(dataDir, `${service}.db`) };
  refuseHalfTls(name, new URL(url).searchParams);
  return { dialect: 'postgres', url, schema, bounds: readDatabaseBounds(env, service) };
}

/** The modes between believe any server, or go on in cleartext, depending on the version of the driver. */
function refuseHalfTls(name: string, parameters: URLSearchParams): void {
  const mode = parameters.get('sslmode') ?? 'verify-full';
  const isPlain = mode === 'disable' || mode === 'verify-full';
  if (isPlain && !parameters.has('ssl') && !parameters.has('uselibpqcompat')) return;
  throw new ConfigError('The environment', [
    `${name} may say of TLS sslmode=verify-full, with sslrootcert naming the authority's file, or sslmode=disable, and nothing else.`,
  ]);
}
