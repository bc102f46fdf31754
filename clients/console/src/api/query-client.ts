import { QueryClient } from '@tanstack/react-query';
import { isTransient } from './errors.ts';

/**
 * Creates the query cache. Queries are refetched after stream events and when the tab gets the focus; nothing polls.
 */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (count, error) => count < 3 && isTransient(error),
        refetchOnWindowFocus: true,
      },
    },
  });
}
