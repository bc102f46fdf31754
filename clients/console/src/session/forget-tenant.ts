import type { QueryClient } from '@tanstack/react-query';

/** Queries that stay cached: the settings of the console, and the caller, which SessionProvider reads again. */
const KEPT = ['config', 'caller'];

/** Removes the cached data of a tenant, so that the next user of this browser tab does not see it (SYS-6). */
export function forgetTenant(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => !KEPT.includes(String(queryKey[0])) });
}
