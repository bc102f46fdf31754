import { QueryClient } from '@tanstack/react-query';
import { isTransient } from './errors.ts';

/** The cache of answers. Pages refresh on events of streams and when the tab gets the focus, and never poll. */
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
