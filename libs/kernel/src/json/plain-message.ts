import type { JsonObject } from './json-value.ts';

interface Duration {
  readonly $typeName: 'google.protobuf.Duration';
}

/**
 * A protobuf message as a plain value, for domain code and for columns. A field that is not set is absent, and
 * - `timeout`, a Duration, is `timeoutMs`;
 * - `optionsJson`, the text of a JSON object, is `options`, an empty object for an empty text;
 * - a 64-bit integer is a number, except amounts (`NanoUsd`), which stay bigint (EM-4);
 * - an enum value is its name in `Names`, absent when unspecified.
 *
 * @example
 * ```ts
 * import type { PlainMessage } from '@writ/kernel';
 *
 * interface Pause { $typeName: 'acme.Pause'; reason: number; optionsJson: string; maxTurns?: bigint | undefined }
 * const pause: PlainMessage<Pause, { reason: 'lunch' | 'night' }> = { reason: 'lunch', options: {}, maxTurns: 3 };
 * ```
 */
export type PlainMessage<M, Names> = {
  readonly [K in Field<M> as IsOptional<M, K, Names> extends true
    ? never
    : PlainKey<K, M[K]>]: PlainValue<K, M[K], Names>;
} & {
  readonly [K in Field<M> as IsOptional<M, K, Names> extends true
    ? PlainKey<K, M[K]>
    : never]?: PlainValue<K, Exclude<M[K], undefined>, Names>;
};

type Field<M> = Exclude<keyof M & string, '$typeName' | '$unknown'>;

type IsOptional<M, K extends keyof M, Names> = undefined extends M[K]
  ? true
  : K extends keyof Names
    ? true
    : false;

type PlainKey<K extends string, V> =
  NonNullable<V> extends Duration ? `${K}Ms` : K extends `${infer Name}Json` ? Name : K;

type PlainValue<K, V, Names> = K extends keyof Names
  ? Names[K]
  : K extends `${string}Json`
    ? JsonObject
    : V extends bigint
      ? K extends `${string}NanoUsd`
        ? bigint
        : number
      : V extends Duration
        ? number
        : V extends readonly (infer E)[]
          ? readonly PlainValue<K, E, Names>[]
          : V extends { readonly $typeName: string }
            ? PlainMessage<V, Names>
            : V;
