import { column, table } from '@writ/store';

/** The token bucket of a tenant's calls (SYS-6). */
export const tenantRates = table('tenant_rates', {
  columns: {
    tenant: column.text(),
    tokens: column.real(),
    filled_at: column.timestamp(),
  },
  primaryKey: ['tenant'],
});
