import type { Signer, Verifier } from '@writ/identity';
import type { Ledger } from './app/pool/ledger.ts';
import type { PauseFeed } from './app/pool/pause-feed.ts';
import type { SpawnBudgetConfig } from './config.ts';

/** The dependencies of every handler; service.ts creates them. */
export interface SpawnBudgetContext {
  readonly config: Pick<SpawnBudgetConfig, 'grantTtlMs'>;
  readonly ledger: Ledger;
  readonly feed: PauseFeed;
  readonly signer: Signer;
  readonly verifier: Verifier;
}
