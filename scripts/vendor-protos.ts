import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { printProto2 } from './descriptor-to-proto.ts';

const require = createRequire(import.meta.url);

const VALIDATE_HEADER = `
// Copyright 2024-2026 Buf Technologies, Inc.
// Licensed under the Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0
//
// Printed by scripts/vendor-protos.ts from the descriptor in the npm package @bufbuild/protovalidate, which ships
// no .proto file. Comments and the CEL expressions of the predefined rules are omitted: this file is used only to
// compile contracts that contain rules; each protovalidate runtime contains the expressions itself.
`.trimStart();

/** Third-party contracts that npm packages ship as files, by their import path: the package and the file in it. */
const COPIED: Readonly<Record<string, readonly [name: string, file: string]>> = {
  'google/rpc/code.proto': ['google-proto-files', 'google/rpc/code.proto'],
  'google/rpc/error_details.proto': ['google-proto-files', 'google/rpc/error_details.proto'],
  'google/rpc/status.proto': ['google-proto-files', 'google/rpc/status.proto'],
  'grpc/health/v1/health.proto': ['grpc-health-check', 'proto/health/v1/health.proto'],
  ...Object.fromEntries(
    ['v1', 'v1alpha'].map((version) => {
      const path = `grpc/reflection/${version}/reflection.proto`;
      return [path, ['@grpc/reflection', `build/proto/${path}`] as const];
    }),
  ),
};

/**
 * Writes every third-party contract that the contracts of Writ import, or that Writ serves, below `target`, replacing
 * what is there.
 *
 * @param target the folder to fill, normally `vendor/proto`
 * @throws Error when an npm package no longer has the file, or its descriptor cannot be printed faithfully
 */
export async function vendorProtos(target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  for (const [path, source] of Object.entries(COPIED)) {
    const to = join(target, path);
    await mkdir(dirname(to), { recursive: true });
    await copyFile(locate(...source), to);
  }
  const validate = join(target, 'buf/validate/validate.proto');
  await mkdir(dirname(validate), { recursive: true });
  await writeFile(validate, printProto2(file_buf_validate_validate.proto, VALIDATE_HEADER));
}

function locate(name: string, file: string): string {
  // package.json is resolved because some packages list no .proto file in their exports.
  return join(dirname(require.resolve(`${name}/package.json`)), file);
}

if (import.meta.main) await vendorProtos('vendor/proto');
