/** Said of every value beyond the cap. */
export const OTHER = 'other';

const DEFAULT_CAP = 100;
/** Such as `tool_denied:<tool>`: what follows the colon is the agent's to choose. */
const REASONS: ReadonlySet<string> = new Set(['writ.status', 'writ.stop_reason', 'error.type']);

/** The values of labels. */
export type Labels = Readonly<Record<string, string | undefined>>;

/**
 * Bounds the values that a label may take (SYS-6): after the first ones, every new value is `other`,
 * so that neither tenants nor agents can make as many series as they like. Reasons keep what stands
 * before their colon.
 */
export class LabelCaps {
  readonly #cap: number;
  readonly #known = new Map<string, Set<string>>();

  constructor(cap = DEFAULT_CAP) {
    this.#cap = cap;
  }

  /** The labels as they may be told; undefined ones are left out. */
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
