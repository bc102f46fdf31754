/** `T` with each field whose value may be undefined replaced by an optional field without undefined. */
export type Defined<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * Returns a copy of `fields` without undefined values, as `exactOptionalPropertyTypes` requires.
 *
 * @example
 * ```ts
 * import { omitUndefined } from '@writ/kernel';
 *
 * const maxTokens: number | undefined = undefined;
 * const budget: { maxTokens?: number; maxTurns?: number } = omitUndefined({ maxTokens, maxTurns: 3 });
 * // { maxTurns: 3 }
 * ```
 */
export function omitUndefined<T extends object>(fields: T): Defined<T> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as Defined<T>;
}
