import { omitUndefined } from './omit-undefined.ts';
/** Notes on a key for the configuration reference. */
export interface KeyNotes {
  /** The effect of omitting the key, such as `unlimited`. */
  readonly default?: string;
  /** Unit of a number, such as `tokens`. */
  readonly unit?: string;
}

/**
 * Documents a key of a configuration file: the reference in docs/ and the schemas for editors are generated from it.
 *
 * @example
 * ```ts
 * import { about } from '@writ/kernel';
 *
 * const schema = {
 *   type: 'object',
 *   properties: { max_turns: about('Model round trips.', { type: 'integer' }, { default: 'unlimited' }) },
 * };
 * ```
 */
export function about<S extends object>(description: string, schema: S, notes: KeyNotes = {}): S {
  return {
    ...schema,
    description,
    ...omitUndefined({ 'x-default': notes.default, 'x-unit': notes.unit }),
  };
}
