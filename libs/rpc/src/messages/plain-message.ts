import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { type Duration, durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type ManifestNames,
  type PlainMessage,
  parseJsonStrict,
} from '@writ/kernel';

/** Field name and reason code for errors about an invalid field. */
export interface MessageErrors {
  /** Name of the message, used as the prefix of field names in errors. */
  readonly field: string;
  readonly reason: ConstructorParameters<typeof InvalidRequestError>[0];
}

/** `T` with every field optional, at every depth. An omitted field has its Protobuf default. */
type DeepPartial<T> = T extends readonly (infer E)[]
  ? readonly DeepPartial<E>[]
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> }
    : T;

type Fields = Readonly<Record<string, unknown>>;

const DURATION = 'google.protobuf.Duration';

/** Conversions for enums whose plain names are not the lower-case contract names. */
const SPELLING: Readonly<Record<string, (name: string) => string>> = {
  'writ.supervision.v1.AgentKind': (name) => name.toLowerCase().replaceAll('_', '-'),
  'writ.supervision.v1.Priority': (name) => name,
};

/**
 * The plain value of a message; see PlainMessage.
 * @throws InvalidRequestError naming the field: with the given reason for JSON that is not an object, or with a reason
 *   of parseJsonStrict, such as INVALID_JSON, JSON_TOO_LARGE or JSON_DUPLICATE_KEY
 */
export function plainOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  errors: MessageErrors,
): PlainMessage<MessageShape<Desc>, ManifestNames> {
  return plainFields(schema, message as Fields, errors) as PlainMessage<
    MessageShape<Desc>,
    ManifestNames
  >;
}

/** Converts a plain value to a message; fields that the message type does not have are ignored. */
export function messageOf<Desc extends DescMessage>(
  schema: Desc,
  plain: DeepPartial<PlainMessage<MessageShape<Desc>, ManifestNames>>,
): MessageInitShape<Desc> {
  const entries = schema.fields.map((field) => {
    const value = (plain as Fields)[plainKey(field)];
    const convert = (item: unknown) => messageValue(field, item);
    return [field.localName, Array.isArray(value) ? value.map(convert) : convert(value)] as const;
  });
  return present(entries) as MessageInitShape<Desc>;
}

function plainFields(schema: DescMessage, message: Fields, errors: MessageErrors): Fields {
  const entries = schema.fields.map((field) => {
    const path = `${errors.field}.${field.name}`;
    const value = message[field.localName];
    const plain = Array.isArray(value)
      ? value.map((item, index) =>
          plainValue(field, item, { ...errors, field: `${path}[${index}]` }),
        )
      : plainValue(field, value, { ...errors, field: path });
    return [plainKey(field), plain] as const;
  });
  return present(entries);
}

/** Converts the value of a field, or one element of a repeated field; undefined when it is not set. */
function plainValue(field: DescField, value: unknown, errors: MessageErrors): unknown {
  if (value === undefined) return undefined;
  if (field.enum) return nameOf(field.enum, value);
  if (field.message?.typeName === DURATION) return durationMs(value as Duration);
  if (field.message) return plainFields(field.message, value as Fields, errors);
  if (isJsonText(field)) return value === '' ? {} : parseObject(value as string, errors);
  return typeof value === 'bigint' && !isAmount(field) ? Number(value) : value;
}

function messageValue(field: DescField, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (field.enum) return numberOf(field.enum, value);
  if (field.message?.typeName === DURATION) return durationFromMs(value as number);
  if (field.message) return messageOf(field.message, value as Fields);
  if (isJsonText(field)) return JSON.stringify(value);
  return isInt64(field) ? BigInt(value as number) : value;
}

function plainKey(field: DescField): string {
  if (field.message?.typeName === DURATION) return `${field.localName}Ms`;
  return isJsonText(field) ? field.localName.slice(0, -'Json'.length) : field.localName;
}

function isJsonText({ name, scalar }: DescField): boolean {
  return scalar === ScalarType.STRING && name.endsWith('_json');
}

function isInt64({ scalar }: DescField): boolean {
  return scalar === ScalarType.INT64 || scalar === ScalarType.UINT64;
}

/** Whether a field is an amount of money, which must stay a bigint to be exact (EM-4). */
function isAmount({ name }: DescField): boolean {
  return name.endsWith('_nano_usd');
}

function parseObject(text: string, { field, reason }: MessageErrors): JsonObject {
  const value = parseJsonStrict(text, { field });
  if (isJsonObject(value)) return value;
  throw new InvalidRequestError(reason, `${field} must be a JSON object.`, { field });
}

function nameOf(desc: DescEnum, value: unknown): string | undefined {
  const name = value === 0 ? undefined : desc.values.find(({ number }) => number === value);
  return name && spelled(desc, name.localName);
}

function numberOf(desc: DescEnum, name: unknown): number {
  return desc.values.find(({ localName }) => spelled(desc, localName) === name)?.number ?? 0;
}

function spelled(desc: DescEnum, name: string): string {
  return SPELLING[desc.typeName]?.(name) ?? name.toLowerCase();
}

function present(entries: readonly (readonly [string, unknown])[]): Fields {
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
