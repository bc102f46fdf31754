import { join } from 'node:path';
import { readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { variableName } from './names.ts';

/** Where a service keeps its state, with the shape of `StoreLocation`. */
export type ServiceStoreLocation =
  | { readonly dialect: 'sqlite'; readonly file: string }
  | { readonly dialect: 'postgres'; readonly url: string; readonly schema: string };

/**
 * Where `service` keeps its state: in the PostgreSQL database of `WRIT_<SERVICE>_DATABASE_URL`, in the
 * schema named like the service, or, when that is not set, in a SQLite file in `dataDir`.
 * @throws ConfigError naming the variable, never its value
 */
export function readStoreLocation(
  env: NodeJS.ProcessEnv,
  service: ServiceName,
  dataDir: string,
): ServiceStoreLocation {
  const { url } = readEnv(env, {
    url: variable.url(variableName(service, 'DATABASE_URL'), {
      optional: true,
      protocols: ['postgres', 'postgresql'],
      secret: true,
      example: 'postgres://user@127.0.0.1:5432/writ',
      about: 'the PostgreSQL database that keeps its state',
    }),
  });
  if (url === undefined) return { dialect: 'sqlite', file: join(dataDir, `${service}.db`) };
  return { dialect: 'postgres', url, schema: service.replaceAll('-', '_') };
}
