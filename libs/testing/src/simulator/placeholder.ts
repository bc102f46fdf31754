import { valueAt } from './json-path.ts';

/** The JSON that placeholders draw from. */
export interface PlaceholderSources {
  /** JSON of the last user message. */
  readonly json: unknown;
  /** JSON of the last tool message. */
  readonly tool: unknown;
  /** The script's named values, which draw from the two above. */
  readonly values?: Readonly<Record<string, string>>;
}

const PLACEHOLDER = /\$\{(\w+):([^{}]+)\}/g;

/** Thrown when the request does not hold what a reply quotes from it. */
export class PlaceholderError extends Error {
  /** @param placeholder as written, such as `${json:goal}` */
  constructor(placeholder: string) {
    super(`Nothing is found for ${placeholder}`);
    this.name = 'PlaceholderError';
  }
}

/**
 * A copy of `value` with every placeholder filled in.
 * @throws PlaceholderError when none of a placeholder's paths is there
 */
export function fill(value: unknown, sources: PlaceholderSources): unknown {
  if (typeof value === 'string') return fillText(value, sources);
  if (Array.isArray(value)) return value.map((item) => fill(item, sources));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, sources)]));
}

/**
 * One sentence for each `${` in `value` that is no placeholder.
 * @param names the values that `${value:name}` may name
 */
export function faultsOf(value: unknown, names: readonly string[]): string[] {
  if (typeof value === 'string') {
    const rest = value.replaceAll(PLACEHOLDER, (whole, source: string, path: string) =>
      source === 'json' || source === 'tool' || (source === 'value' && names.includes(path))
        ? ''
        : whole,
    );
    return rest.includes('${')
      ? [
          `"${rest.slice(rest.indexOf('${')).slice(0, 40)}" is no placeholder; write \${json:path}, \${tool:path} or \${value:name}.`,
        ]
      : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((item) => faultsOf(item, names));
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
