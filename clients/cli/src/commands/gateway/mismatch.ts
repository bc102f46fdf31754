/**
 * The first difference between `actual` and `expected`; undefined when there is none. Objects may have additional
 * fields, lists may not have additional items. `{matches: <regular expression>}`, `{one_of: [...]}` and
 * `{absent: true}` replace equality.
 */
export function mismatch(actual: unknown, expected: unknown, path = ''): string | undefined {
  if (isFields(expected)) return mismatchOfFields(actual, expected, path);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) {
      return `${path} is ${shown(actual)}, not ${shown(expected)}`;
    }
    return first(expected.map((item, at) => mismatch(actual[at], item, `${path}[${at}]`)));
  }
  if (actual === expected) return undefined;
  return `${path || 'it'} is ${shown(actual)}, not ${shown(expected)}`;
}

type Fields = Readonly<Record<string, unknown>>;

function mismatchOfFields(actual: unknown, expected: Fields, path: string): string | undefined {
  const { matches, one_of: oneOf, absent } = expected;
  if (typeof matches === 'string') {
    if (typeof actual === 'string' && new RegExp(matches, 'su').test(actual)) return undefined;
    return `${path} is ${shown(actual)}, which does not match ${matches}`;
  }
  if (Array.isArray(oneOf)) {
    if (oneOf.some((item) => mismatch(actual, item) === undefined)) return undefined;
    return `${path} is ${shown(actual)}, none of ${shown(oneOf)}`;
  }
  if (absent === true) {
    return actual === undefined ? undefined : `${path} is ${shown(actual)} and should be absent`;
  }
  if (!isFields(actual)) return `${path || 'it'} is ${shown(actual)}, not ${shown(expected)}`;
  return first(
    Object.entries(expected).map(([key, item]) =>
      mismatch(
        Object.hasOwn(actual, key) ? actual[key] : undefined,
        item,
        path === '' ? key : `${path}.${key}`,
      ),
    ),
  );
}

function first(found: readonly (string | undefined)[]): string | undefined {
  return found.find((what) => what !== undefined);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : JSON.stringify(value);
  return text.length <= 300 ? text : `${text.slice(0, 300)}…`;
}
