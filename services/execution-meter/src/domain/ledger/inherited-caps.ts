import { type Caps, DIMENSIONS } from './amount.ts';

/**
 * Returns the caps of an agent after the caps of its run have changed: a cap that equals the previous cap of the run is
 * inherited and changes with it; any other cap stays unchanged (EM-1, EM-3). Undefined when nothing is inherited.
 */
export function capsAfterRunChange(
  own: Caps,
  { before, after }: { readonly before: Caps; readonly after: Caps },
): Caps | undefined {
  const inherited = DIMENSIONS.filter((name) => own[name] === before[name]);
  if (inherited.length === 0) return undefined;
  return { ...own, ...Object.fromEntries(inherited.map((name) => [name, after[name]])) };
}
