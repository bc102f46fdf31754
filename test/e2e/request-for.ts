import { create, type DescField, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';

/** Texts for fields, by name. */
export type FieldTexts = Readonly<Record<string, string>>;

/**
 * A request that names the given things wherever a field of that name asks for one, built from the
 * descriptor: of a oneof the first member, of messages those of Writ, of the rest nothing.
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
    if (isOurs(field)) message.set(field, filled(field.message, texts));
  }
  return message;
}

function isOurs(field: DescField): field is DescField & { fieldKind: 'message' } {
  if (field.fieldKind !== 'message') return false;
  // Messages that mean something by being there, such as a budget, are left out unless they name things.
  return field.oneof !== undefined || namesThings(field.message);
}

function namesThings({ typeName, fields }: DescMessage): boolean {
  return typeName.startsWith('writ.') && fields.some(({ name }) => /_id$|^tenant$/.test(name));
}
