import type { FormatOptions } from '../../output/format.ts';

/** Steps that rotate the CA without rejecting connections. */
export const STEPS = ['begin', 'issue', 'finish'] as const;

/** Lifetime of certificates without --days, in days. */
export const DEFAULT_DAYS = '7';

/** Options of `writ certs`. */
export interface CertsOptions extends FormatOptions {
  readonly trustDomain?: string;
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  readonly also?: readonly string[];
  readonly days: string;
  readonly caDays: string;
  readonly renew?: boolean;
  readonly replaceCa?: (typeof STEPS)[number];
}
