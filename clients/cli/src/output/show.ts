import { type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf';
import { stringify } from 'yaml';
import type { CliIo } from '../io.ts';
import type { FormatOptions } from './format.ts';

/**
 * Prints a message: `lines` in text format, otherwise the complete message as JSON or YAML in the form of the HTTP API.
 * `stream` prints one JSON line, or one YAML document, for each message of a stream.
 */
export function show<D extends DescMessage>(
  { print }: Pick<CliIo, 'print'>,
  { output }: FormatOptions,
  message: { readonly schema: D; readonly value: MessageShape<D>; readonly stream?: boolean },
  lines: () => readonly string[],
): void {
  if (output === 'text') {
    for (const line of lines()) print(line);
    return;
  }
  const json = toJson(message.schema, message.value);
  if (output === 'yaml') print(`${message.stream ? '---\n' : ''}${stringify(json).trimEnd()}`);
  else print(message.stream ? JSON.stringify(json) : JSON.stringify(json, null, 2));
}

/**
 * Prints data that is not an API message: `lines` in text format, otherwise `value` as JSON or YAML with times in ISO
 * 8601.
 */
export function showData(
  { print }: Pick<CliIo, 'print'>,
  { output }: FormatOptions,
  value: object,
  lines: () => readonly string[],
): void {
  if (output === 'text') {
    for (const line of lines()) print(line);
    return;
  }
  const json = JSON.stringify(value, null, 2);
  print(output === 'json' ? json : stringify(JSON.parse(json)).trimEnd());
}
