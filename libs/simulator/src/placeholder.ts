/** The values that placeholders refer to. */
export interface PlaceholderSources {
  /** JSON of the last user message. */
  readonly json: unknown;
  /** JSON of the last tool message after the last user message. */
  readonly tool: unknown;
  /** The named values of the script, which may contain placeholders for `json` and `tool`. */
  readonly values?: Readonly<Record<string, string>>;
}

const PLACEHOLDER = /\$\{(\w+):([^{}]+)\}/g;

/** Thrown when a request lacks the value that a placeholder refers to. */
export class PlaceholderError extends Error {
  /** @param placeholder as written, such as `${json:goal}` */
  constructor(placeholder: string) {
    super(`The request has no value for ${placeholder}`);
    this.name = 'PlaceholderError';
  }
}

/**
 * Returns a copy of `value` with every placeholder replaced.
 * @throws PlaceholderError when the value at every path of a placeholder is missing or null
 */
export function fill(value: unknown, sources: PlaceholderSources): unknown {
  if (typeof value === 'string') return fillText(value, sources);
  if (Array.isArray(value)) return value.map((item) => fill(item, sources));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, sources)]));
}

/**
 * Returns one sentence for each text in `value` with a `${` that is not a valid placeholder.
 * @param names the names that `${value:name}` may refer to
 */
export function placeholderProblems(value: unknown, names: readonly string[]): string[] {
  if (typeof value === 'string') {
    const rest = value.replaceAll(PLACEHOLDER, (whole, source: string, path: string) =>
      source === 'json' || source === 'tool' || (source === 'value' && names.includes(path))
        ? ''
        : whole,
    );
    return rest.includes('${')
      ? [
          `"${rest.slice(rest.indexOf('${')).slice(0, 40)}" is not a valid placeholder; write \${json:path}, \${tool:path} or \${value:name}.`,
        ]
      : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((item) => placeholderProblems(item, names));
}

function fillText(text: string, sources: PlaceholderSources): unknown {
  const [only] = text.matchAll(PLACEHOLDER);
  if (only !== undefined && only[0] === text) return lookUp(text, only[1], only[2], sources);
  return text.replaceAll(PLACEHOLDER, (whole, source: string, paths: string) => {
    const value = lookUp(whole, source, paths, sources);
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}

function lookUp(
  placeholder: string,
  source: string | undefined,
  paths = '',
  { values, ...sources }: PlaceholderSources,
): unknown {
  if (source === 'value') return fillText(values?.[paths] ?? '', sources);
  const root = source === 'tool' ? sources.tool : sources.json;
  for (const path of paths.split('|')) {
    const value = valueAt(root, path.trim());
    if (value !== undefined && value !== null) return value;
  }
  throw new PlaceholderError(placeholder);
}

/**
 * Returns the value at a dotted path such as `state_summary.last_step.step` or `items.-1.id`, where a
 * number is a list index and a negative one counts from the end; undefined when it does not exist.
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
