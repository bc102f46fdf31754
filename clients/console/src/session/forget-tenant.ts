import type { QueryClient } from '@tanstack/react-query';

/** Queries without data of a tenant. */
const KEPT = ['config', 'caller'];

/** Removes the cached data of a tenant, so that the next user of this tab does not see it (SYS-6). */
export function forgetTenant(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => !KEPT.includes(String(queryKey[0])) });
}
