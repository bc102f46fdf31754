/** Collects the values of an option that can be repeated. */
export function collect(value: string, earlier: readonly string[]): string[] {
  return [...earlier, value];
}
