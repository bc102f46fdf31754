/** `T` without the fields whose value may be undefined, which become optional. */
export type Defined<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * A copy of `fields` without the ones that are undefined: what `exactOptionalPropertyTypes` asks for.
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
