import type { Signer, Verifier } from '@writ/identity';
import type { PauseFeed } from './app/pool/pause-feed.ts';
import type { PoolRepository } from './app/pool/pool-repository.ts';
import type { SpawnBudgetConfig } from './config.ts';

/** The dependencies of every handler; service.ts creates them. */
export interface SpawnBudgetContext {
  readonly config: Pick<SpawnBudgetConfig, 'grantTtlMs'>;
  readonly repository: PoolRepository;
  readonly feed: PauseFeed;
  readonly signer: Signer;
  readonly verifier: Verifier;
}
