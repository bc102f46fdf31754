import type { SupervisorContext } from '../../context.ts';
import { type HaltFilter, type HaltRow, selectHalts } from '../../store/halt/halts.ts';

/** Reads the halts of a page, newest first. */
export async function listHalts(
  { store }: Pick<SupervisorContext, 'store'>,
  filter: HaltFilter,
): Promise<HaltRow[]> {
  return await selectHalts(store.urgentDb, filter);
}
