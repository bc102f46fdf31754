import { create, type DescField, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';

/** Values of string fields, and names of values of enums, by field name. */
export type FieldTexts = Readonly<Record<string, string>>;

/**
 * Builds a valid request from its descriptor. Sets string and enum fields by name, the first member of each oneof, and
 * the messages of Writ that contain ids; leaves every other field empty.
 */
export function requestFor(schema: DescMessage, texts: FieldTexts): Uint8Array {
  return toBinary(schema, filled(schema, texts).message);
}

function filled(schema: DescMessage, texts: FieldTexts) {
  const message = reflect(schema, create(schema));
  for (const field of schema.fields) {
    if (field.oneof !== undefined && field.oneof.fields[0] !== field) continue;
    const text = texts[field.name];
    if (field.fieldKind === 'scalar' && text !== undefined) message.set(field, text);
    const value = field.fieldKind === 'enum' && field.enum.values.find(({ name }) => name === text);
    if (field.fieldKind === 'enum' && value) message.set(field, value.number);
    if (isIncluded(field)) message.set(field, filled(field.message, texts));
  }
  return message;
}

function isIncluded(field: DescField): field is DescField & { fieldKind: 'message' } {
  if (field.fieldKind !== 'message') return false;
  // Other messages, such as a budget, change the request by their presence.
  return field.oneof !== undefined || hasIds(field.message);
}

function hasIds({ typeName, fields }: DescMessage): boolean {
  return typeName.startsWith('writ.') && fields.some(({ name }) => /_id$|^tenant$/.test(name));
}
