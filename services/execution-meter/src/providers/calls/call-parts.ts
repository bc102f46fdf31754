import type { MeterContext } from '../../context.ts';
import type { PriceList } from '../catalog/price-list.ts';
import type { AskProvider } from '../provider.ts';
import type { ModelSlots } from '../slots.ts';
import type { CallBooks } from './call-books.ts';

/** What every call in flight works with. */
export interface CallParts {
  readonly context: MeterContext;
  readonly books: CallBooks;
  readonly slots: ModelSlots;
  readonly prices: PriceList;
  readonly ask: AskProvider;
}
