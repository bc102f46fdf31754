import { InvalidRequestError, type JsonObject, type OptionsSchema } from '@writ/kernel';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** Shared by all readers: a separate instance would compile the meta-schema again. */
const ajv = new Ajv2020({ useDefaults: true, strict: true });

/**
 * Creates a reader that validates a manifest's options against a JSON Schema and fills in defaults.
 * The reader throws InvalidRequestError INVALID_MIDDLEWARE_OPTIONS naming the option.
 */
export function optionsReader<T>(
  name: string,
  { properties, required = [] }: OptionsSchema,
): (options: JsonObject) => T {
  const schema = { type: 'object', additionalProperties: false, properties, required };
  let compiled: ValidateFunction<T> | undefined;
  return (given) => {
    compiled ??= ajv.compile<T>(schema);
    const fits = compiled;
    const options: unknown = structuredClone(given);
    if (fits(options)) return options;
    const sentence = ajv.errorsText(fits.errors, { dataVar: `options of ${name}` });
    throw new InvalidRequestError('INVALID_MIDDLEWARE_OPTIONS', `${sentence}.`, { field: name });
  };
}
