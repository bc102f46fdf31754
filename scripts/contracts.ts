/** Reads the contracts in proto/ with their comments. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/** Returns the contracts of Writ with their comments, in the order of the file names. */
export function readContracts(): readonly DescFile[] {
  const folder = mkdtempSync(join(tmpdir(), 'contracts-'));
  try {
    const image = join(folder, 'image.binpb');
    execFileSync('node_modules/.bin/buf', ['build', 'proto', '--output', image]);
    const set = fromBinary(FileDescriptorSetSchema, readFileSync(image));
    return [...createFileRegistry(set).files]
      .filter(({ name }) => name.startsWith('writ/'))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the comment of a declaration as one line. */
export function commentOf(
  desc: DescMessage | DescEnum | DescEnum['values'][number] | DescField | DescService | DescMethod,
): string {
  const file = 'file' in desc ? desc.file : desc.parent.file;
  const path = pathOf(desc).join();
  const location = file.proto.sourceCodeInfo?.location.find((each) => each.path.join() === path);
  return (location?.leadingComments ?? '').trim().replace(/\s*\n\s*/g, ' ');
}

/** The path of a declaration in the source information of its file. */
function pathOf(desc: Parameters<typeof commentOf>[0]): number[] {
  switch (desc.kind) {
    case 'message':
      return desc.parent === undefined
        ? [4, desc.file.proto.messageType.indexOf(desc.proto)]
        : [...pathOf(desc.parent), 3, desc.parent.proto.nestedType.indexOf(desc.proto)];
    case 'enum':
      return desc.parent === undefined
        ? [5, desc.file.proto.enumType.indexOf(desc.proto)]
        : [...pathOf(desc.parent), 4, desc.parent.proto.enumType.indexOf(desc.proto)];
    case 'enum_value':
      return [...pathOf(desc.parent), 2, desc.parent.proto.value.indexOf(desc.proto)];
    case 'field':
      return [...pathOf(desc.parent), 2, desc.parent.proto.field.indexOf(desc.proto)];
    case 'service':
      return [6, desc.file.proto.service.indexOf(desc.proto)];
    case 'rpc':
      return [...pathOf(desc.parent), 2, desc.parent.proto.method.indexOf(desc.proto)];
    default:
      return desc satisfies never;
  }
}
