/** A JSON value. */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;

/** A JSON array. */
export type JsonArray = readonly JsonValue[];

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * Whether `value` is a JSON object, not null or an array.
 *
 * @example
 * ```ts
 * import { isJsonObject, type JsonValue } from '@writ/sdk';
 *
 * export const orderIdOf = (result: JsonValue) => (isJsonObject(result) ? result.order_id : undefined);
 * ```
 */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
