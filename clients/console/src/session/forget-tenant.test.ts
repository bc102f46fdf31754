import { QueryClient } from '@tanstack/react-query';
import { expect, it } from 'vitest';
import { forgetTenant } from './forget-tenant.ts';

it('removes the data of a tenant, and keeps the settings and the caller (PE-2, SYS-6)', () => {
  const queries = new QueryClient();
  for (const key of ['config', 'caller', 'runs', 'run', 'audit', 'usage', 'halts']) {
    queries.setQueryData([key, 1], key);
  }
  forgetTenant(queries);
  const kept = queries.getQueryCache().getAll();
  expect(kept.map(({ queryKey }) => queryKey)).toEqual([
    ['config', 1],
    ['caller', 1],
  ]);
});
