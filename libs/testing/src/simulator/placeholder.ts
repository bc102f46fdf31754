import { valueAt } from './json-path.ts';
import type { Json } from './script.ts';

/** The JSON that placeholders draw from. */
export interface PlaceholderSources {
  /** JSON of the last user message. */
  readonly json: unknown;
  /** JSON of the last tool message. */
  readonly tool: unknown;
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
export function fill<T>(value: T, sources: PlaceholderSources): T;
export function fill(value: unknown, sources: PlaceholderSources): unknown {
  if (typeof value === 'string') return fillText(value, sources);
  if (Array.isArray(value)) return value.map((item) => fill(item, sources));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, fill(item as Json, sources)]),
  );
}

/** One sentence for each `${` in `value` that is no placeholder. */
export function faultsOf(value: unknown): string[] {
  if (typeof value === 'string') {
    const rest = value.replaceAll(PLACEHOLDER, (whole, source: string) =>
      source === 'json' || source === 'tool' ? '' : whole,
    );
    return rest.includes('${')
      ? [
          `"${rest.slice(rest.indexOf('${'), 40)}" is no placeholder; write \${json:path} or \${tool:path}.`,
        ]
      : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(faultsOf);
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
  paths: string | undefined,
  sources: PlaceholderSources,
): unknown {
  const root = source === 'tool' ? sources.tool : sources.json;
  for (const path of paths?.split('|') ?? []) {
    const value = valueAt(root, path.trim());
    if (value !== undefined && value !== null) return value;
  }
  throw new PlaceholderError(placeholder);
}
