/**
 * The value at a dotted path such as `state_summary.last_step.step` or `items.-1.id`, where a
 * number is a list's index and a negative one counts from its end. Undefined when not there.
 */
export function valueAt(root: unknown, path: string): unknown {
  let found = root;
  for (const step of path.split('.')) {
    if (Array.isArray(found)) found = /^-?\d+$/.test(step) ? found.at(Number(step)) : undefined;
    else if (typeof found === 'object' && found !== null && Object.hasOwn(found, step)) {
      found = (found as Record<string, unknown>)[step];
    } else return undefined;
  }
  return found;
}
