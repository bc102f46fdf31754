import type { Signer, Verifier } from '@writ/identity';
import type { SpawnBudgetConfig } from './config.ts';
import type { Ledger } from './store/ledger.ts';
import type { PauseFeed } from './store/pause-feed.ts';

/** What every handler of spawn-budget works with; built by service.ts. */
export interface SpawnBudgetContext {
  readonly config: Pick<SpawnBudgetConfig, 'grantTtlMs'>;
  readonly ledger: Ledger;
  readonly feed: PauseFeed;
  readonly signer: Signer;
  readonly verifier: Verifier;
}
