/** The value of a label after its cap is reached. */
export const OTHER = 'other';

const DEFAULT_CAP = 100;
/** Labels with values such as `tool_denied:<tool>`. Agents choose the part after the colon. */
const REASONS: ReadonlySet<string> = new Set(['writ.status', 'writ.stop_reason', 'error.type']);

/** The values of labels. */
export type Labels = Readonly<Record<string, string | undefined>>;

/**
 * Limits the number of values per label (SYS-6): the first `cap` values (default 100) are kept, and every new value
 * becomes `other`, so that tenants and agents cannot create an unlimited number of series. Reasons are cut at their
 * colon.
 */
export class LabelCaps {
  readonly #cap: number;
  readonly #known = new Map<string, Set<string>>();

  constructor(cap = DEFAULT_CAP) {
    this.#cap = cap;
  }

  /** Returns the labels with limited values; undefined ones are omitted. */
  bound(labels: Labels): Record<string, string> {
    const bounded: Record<string, string> = {};
    for (const [name, value] of Object.entries(labels)) {
      if (value !== undefined) bounded[name] = this.#value(name, value);
    }
    return bounded;
  }

  #value(name: string, given: string): string {
    const value = REASONS.has(name) ? (given.split(':', 1)[0] ?? '') : given;
    let known = this.#known.get(name);
    if (known === undefined) {
      known = new Set();
      this.#known.set(name, known);
    }
    if (known.has(value)) return value;
    if (known.size >= this.#cap) return OTHER;
    known.add(value);
    return value;
  }
}
