/** The tables of messages, fields and enums in the generated pages of the API. */
import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  toJson,
} from '@bufbuild/protobuf';
import {
  FieldRulesSchema,
  field as rulesOf,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { commentOf } from './contracts.ts';

/** The sections of the messages and enums of a package; `page` is the name of their page. */
export function typeSections(page: string, files: readonly DescFile[]): string[] {
  const messages = files.flatMap((file) => file.messages);
  const enums = files.flatMap((file) => file.enums);
  return [
    ...(messages.length === 0 ? [] : ['## Messages', '']),
    ...messages.flatMap((message) => messageSection(page, message, '###')),
    ...(enums.length === 0 ? [] : ['## Enums', '']),
    ...enums.flatMap((each) => enumSection(each)),
  ];
}

function messageSection(page: string, message: DescMessage, level: string): string[] {
  const nested = [
    ...message.nestedMessages.filter(({ proto }) => proto.options?.mapEntry !== true),
  ];
  return [
    `${level} ${message.name}`,
    '',
    commentOf(message),
    '',
    ...(message.fields.length === 0 ? [] : fieldTable(page, message)),
    ...nested.flatMap((each) => messageSection(page, each, level)),
    ...message.nestedEnums.flatMap((each) => enumSection(each)),
  ];
}

function fieldTable(page: string, message: DescMessage): string[] {
  const rows = message.fields.map((field) => {
    const oneof = field.oneof === undefined ? '' : ` One of \`${field.oneof.name}\`.`;
    const about = `${cell(commentOf(field))}${oneof}`;
    return row([`\`${field.name}\``, typeOf(page, field), rulesText(field), about]);
  });
  return ['| field | type | rules | meaning |', '|---|---|---|---|', ...rows, ''];
}

function enumSection(each: DescEnum): string[] {
  const rows = each.values.map((value) =>
    row([`\`${value.name}\``, String(value.number), cell(commentOf(value))]),
  );
  return [
    `### ${each.name}`,
    '',
    commentOf(each),
    '',
    '| value | number | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ];
}

function typeOf(page: string, field: DescField): string {
  const { message, enum: values } = field;
  const named =
    message !== undefined && field.fieldKind !== 'map' ? link(page, message) : undefined;
  const single = named ?? (values === undefined ? field.proto : undefined);
  const text =
    typeof single === 'string'
      ? single
      : values === undefined
        ? scalarOf(field)
        : link(page, values);
  return field.fieldKind === 'list' ? `list of ${text}` : text;
}

const SCALARS: Readonly<Record<number, string>> = {
  1: 'double',
  2: 'float',
  3: 'int64',
  4: 'uint64',
  5: 'int32',
  8: 'bool',
  9: 'string',
  12: 'bytes',
  13: 'uint32',
};

function scalarOf(field: DescField): string {
  if (field.fieldKind === 'map') return `map of ${field.mapKind}s`;
  return SCALARS[field.proto.type] ?? String(field.proto.type);
}

function link(page: string, type: DescMessage | DescEnum): string {
  const [, name = ''] = /^writ\.(\w+)\.v1\./.exec(type.typeName) ?? [];
  const anchor = type.name === 'HookEventType' ? '#event-types' : `#${type.name.toLowerCase()}`;
  if (name === '') return type.name;
  if (name === page) return `[${type.name}](${anchor})`;
  if (name === 'hook') return `[${type.name}](../events.md${anchor})`;
  return `[${type.name}](${page === 'hook' ? 'api/' : ''}${name}.md${anchor})`;
}

/** The validation rules of a field, such as `max_bytes 4096`. */
function rulesText(field: DescField): string {
  const rules = toJson(FieldRulesSchema, getOption(field, rulesOf)) as Record<string, unknown>;
  const { ignore: _, cel, ...typed } = rules;
  const messages = (cel as readonly { message?: string }[] | undefined) ?? [];
  return [...flat(typed), ...messages.map(({ message = '' }) => cell(message))].join(', ');
}

function flat(rules: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(rules).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return flat(value as Record<string, unknown>);
    }
    const rule = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return rule === 'defined_only' || rule === 'not_in'
      ? []
      : [`\`${rule} ${String(value)}\``.replaceAll('|', '\\|')];
  });
}

/** A row of a Markdown table. */
export function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** Text that Markdown must read neither as the end of a cell nor as HTML outside of code. */
export function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .split('`')
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('`');
}
