/**
 * Returns the name of an enum value in lower case, for people and JSON: `Verdict.APPROVE` → `approve`;
 * `unknown_<value>` for an unknown value.
 */
export function wordOf(values: Readonly<Record<string, string | number>>, value: number): string {
  const name = Object.keys(values).find((key) => values[key] === value);
  return (name ?? `unknown_${value}`).toLowerCase();
}
