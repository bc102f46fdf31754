import type { Signer, Verifier } from '@writ/identity';
import type { ModelCalls } from '../app/calls/model-calls.ts';
import type { MeterContext } from '../context.ts';
import type { PriceList } from '../providers/catalog/price-list.ts';

/** Dependencies of handlers; created by service.ts. */
export interface RpcContext extends MeterContext {
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly calls: ModelCalls;
  readonly prices: PriceList;
  /** Flushes the outbox without delay when a run ends, for watchers of the run. */
  readonly flushEvents: () => void;
}
