import type { MeterContext } from '../../context.ts';
import { openTabs } from '../../store/tabs.ts';

type OpenTabs = Parameters<typeof openTabs>[1];

/** Returns a page of the tabs that have been open for at least `ageMs`, across all tenants (BD-3). */
export async function listOpenTabs(
  { store, clock }: Pick<MeterContext, 'store' | 'clock'>,
  { ageMs, ...page }: Pick<OpenTabs, 'after' | 'limit'> & { readonly ageMs: number },
): ReturnType<typeof openTabs> {
  const openedBefore = new Date(clock.now().getTime() - ageMs);
  return await openTabs(store.db, { ...page, openedBefore });
}
