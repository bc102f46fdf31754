import type { Signer, Verifier } from '@writ/identity';
import type { MeterContext } from '../context.ts';
import type { ModelCalls } from '../providers/calls/model-calls.ts';
import type { PriceList } from '../providers/catalog/price-list.ts';

/** What every handler works with; built by service.ts. */
export interface RpcContext extends MeterContext {
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly calls: ModelCalls;
  readonly prices: PriceList;
  /** Has events handed on at once, where a run ends: its watchers leave soon. */
  readonly hurryEvents: () => void;
}
