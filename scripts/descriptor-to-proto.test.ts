import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { printProto2 } from './descriptor-to-proto.ts';
import { runCommand } from './run-command.ts';

describe('printProto2', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-print-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('prints the validation rules so that they compile to the descriptor they came from', async () => {
    const original = file_buf_validate_validate.proto;
    await writeFile(join(folder, 'validate.proto'), printProto2(original, '// Printed.'));
    const image = join(folder, 'image.binpb');
    const built = await runCommand(
      'buf',
      ...['build', folder, '--exclude-source-info', '--as-file-descriptor-set', '--output', image],
    );
    expect(built).toEqual({ code: 0, output: '' });
    const { file } = fromBinary(FileDescriptorSetSchema, await readFile(image));
    const compiled = file.find(({ name }) => name === 'validate.proto');
    expect(compiled && comparable(compiled)).toEqual(comparable(original));
  });

  it('rejects descriptors that it cannot print', () => {
    const proto3 = create(FileDescriptorProtoSchema, { name: 'x.proto', syntax: 'proto3' });
    expect(() => printProto2(proto3, '')).toThrow('x.proto: only proto2 is printed');
    const nested = create(FileDescriptorProtoSchema, {
      messageType: [{ name: 'Outer', nestedType: [{ name: 'Inner' }] }],
    });
    expect(() => printProto2(nested, '')).toThrow('Outer: nested types are not printed');
  });
});

/**
 * Returns a descriptor without the parts that the printer does not preserve: options, and the order of fields around a
 * oneof.
 */
function comparable(file: FileDescriptorProto): unknown {
  const fields = (message: DescriptorProto) =>
    message.field
      .map(({ name, number, label, type, typeName, oneofIndex }) => {
        return { name, number, label, type, typeName, oneofIndex };
      })
      .sort((a, b) => a.number - b.number);
  return {
    package: file.package,
    dependency: file.dependency,
    messages: file.messageType.map((message) => ({
      name: message.name,
      fields: fields(message),
      oneofs: message.oneofDecl.map(({ name }) => name),
      reserved: [message.reservedRange, message.reservedName],
      extensions: message.extensionRange.map(({ start, end }) => [start, end]),
    })),
    enums: file.enumType.map(({ name, value, reservedRange, reservedName }) => {
      return { name, value: value.map((v) => [v.name, v.number]), reservedRange, reservedName };
    }),
    extensions: file.extension.map(({ name, number, extendee, type, typeName }) => {
      return { name, number, extendee, type, typeName };
    }),
  };
}
