import { isFieldSet } from '@bufbuild/protobuf';
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';

/**
 * Prints a proto2 file from its descriptor: imports, messages, oneofs, enums, extensions, extension ranges
 * and reserved ranges. Comments are not in a descriptor, and field options are omitted.
 *
 * @returns the text of the `.proto` file, ending with a line feed
 * @throws Error for a syntax other than proto2, and for declarations that this printer would omit: groups, services,
 *   defaults and nested types
 */
export function printProto2(file: FileDescriptorProto, header: string): string {
  if (file.syntax !== '' && file.syntax !== 'proto2') {
    throw new Error(`${file.name}: only proto2 is printed, this file is ${file.syntax}`);
  }
  if (file.service.length > 0) throw new Error(`${file.name}: services are not printed`);
  const blocks = [
    header.trimEnd(),
    'syntax = "proto2";',
    `package ${file.package};`,
    file.dependency.map((path) => `import "${path}";`).join('\n'),
    ...(file.options?.goPackage ? [`option go_package = "${file.options.goPackage}";`] : []),
    ...groupByExtendee(file).map(([extendee, fields]) =>
      block(
        `extend ${local(extendee, file.package)}`,
        fields.map((field) => fieldLine(field, file.package)),
      ),
    ),
    ...file.messageType.map((message) => printMessage(message, file.package)),
    ...file.enumType.map(printEnum),
  ];
  return `${blocks.join('\n\n')}\n`;
}

function printMessage(message: DescriptorProto, pkg: string): string {
  if (message.nestedType.length + message.enumType.length + message.extension.length > 0) {
    throw new Error(`${message.name}: nested types are not printed`);
  }
  const lines = message.field
    .filter((field) => oneofOf(field) === undefined)
    .map((field) => fieldLine(field, pkg));
  message.oneofDecl.forEach((oneof, index) => {
    const members = message.field.filter((field) => oneofOf(field) === index);
    const inner = members.map((field) => fieldLine(field, pkg).replace(/^optional /, ''));
    lines.push(...block(`oneof ${oneof.name}`, inner).split('\n'));
  });
  lines.push(...reserved(message.reservedRange, message.reservedName, 1));
  // Ranges of descriptors exclude their end; 2^29 means `max`.
  for (const { start, end } of message.extensionRange) {
    lines.push(`extensions ${start} to ${end === 2 ** 29 ? 'max' : end - 1};`);
  }
  return block(`message ${message.name}`, lines);
}

function printEnum(enumeration: EnumDescriptorProto): string {
  return block(`enum ${enumeration.name}`, [
    ...enumeration.value.map(({ name, number }) => `${name} = ${number};`),
    ...reserved(enumeration.reservedRange, enumeration.reservedName, 0),
  ]);
}

function fieldLine(field: FieldDescriptorProto, pkg: string): string {
  if (field.type === FieldDescriptorProto_Type.GROUP || field.defaultValue !== '') {
    throw new Error(`${field.name}: groups and defaults are not printed`);
  }
  const label = FieldDescriptorProto_Label[field.label].toLowerCase();
  const type = field.typeName
    ? local(field.typeName, pkg)
    : FieldDescriptorProto_Type[field.type].toLowerCase();
  return `${label} ${type} ${field.name} = ${field.number};`;
}

function oneofOf(field: FieldDescriptorProto): number | undefined {
  // An unset index reads as 0, which is also the first oneof.
  return isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex)
    ? field.oneofIndex
    : undefined;
}

function reserved(
  ranges: readonly { start: number; end: number }[],
  names: readonly string[],
  pastEnd: 0 | 1,
): string[] {
  const numbers = ranges.map(({ start, end }) => {
    const last = end - pastEnd;
    return start === last ? `${start}` : `${start} to ${last}`;
  });
  return [
    ...(numbers.length > 0 ? [`reserved ${numbers.join(', ')};`] : []),
    ...(names.length > 0 ? [`reserved ${names.map((name) => `"${name}"`).join(', ')};`] : []),
  ];
}

function groupByExtendee(file: FileDescriptorProto): [string, FieldDescriptorProto[]][] {
  return [...Map.groupBy(file.extension, (field) => field.extendee)];
}

function local(typeName: string, pkg: string): string {
  const prefix = `.${pkg}.`;
  return typeName.startsWith(prefix) ? typeName.slice(prefix.length) : typeName.slice(1);
}

function block(opening: string, lines: readonly string[]): string {
  return lines.length === 0
    ? `${opening} {}`
    : `${opening} {\n${lines.map((line) => `  ${line}`).join('\n')}\n}`;
}
