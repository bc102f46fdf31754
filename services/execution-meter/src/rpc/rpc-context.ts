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
  /**
   * Publishes the pending events of the outbox without delay. CloseTab calls it for each tab, so that watchers of a run
   * receive its last events early.
   */
  readonly flushEvents: () => void;
}
