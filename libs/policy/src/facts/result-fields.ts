import type { JsonValue } from '@writ/kernel';

/** Converts `{'refund.amount_usd': 5}` to `{refund: {amount_usd: 5}}`. */
export function nested(fields: Readonly<Record<string, JsonValue>>): object {
  const result: Branch = new Map();
  for (const [path, value] of Object.entries(fields).sort()) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let branch: Branch | undefined = result;
    for (const name of names) branch = branch && descend(branch, name);
    if (branch !== undefined && !branch.has(last)) branch.set(last, value);
  }
  return result;
}

type Branch = Map<string, JsonValue | Branch>;

/** Returns the branch below `name` and creates it if it is missing; undefined when `name` already has a value. */
function descend(branch: Branch, name: string): Branch | undefined {
  const known = branch.get(name);
  if (known instanceof Map) return known;
  if (known !== undefined) return undefined;
  const created: Branch = new Map();
  branch.set(name, created);
  return created;
}
