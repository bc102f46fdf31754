import { InvalidRequestError, type JsonObject } from '@writ/kernel';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** Shared by all readers: each validator compiles the rules for schemas anew, which delays a start. */
const ajv = new Ajv2020({ useDefaults: true, strict: true });

/**
 * A reader of a manifest's options by a JSON Schema, with its defaults filled in. The reader throws
 * InvalidRequestError INVALID_MIDDLEWARE_OPTIONS naming the option.
 */
export function optionsReader<T>(
  whose: string,
  properties: Readonly<Record<string, JsonObject>>,
  required: readonly string[] = [],
): (options: JsonObject) => T {
  const schema = { type: 'object', additionalProperties: false, properties, required };
  let compiled: ValidateFunction<T> | undefined;
  return (given) => {
    compiled ??= ajv.compile<T>(schema);
    const fits = compiled;
    const options: unknown = structuredClone(given);
    if (fits(options)) return options;
    const sentence = ajv.errorsText(fits.errors, { dataVar: `options of ${whose}` });
    throw new InvalidRequestError('INVALID_MIDDLEWARE_OPTIONS', `${sentence}.`, { field: whose });
  };
}
