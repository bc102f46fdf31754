import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, status } from '@grpc/grpc-js';
import { omitUndefined } from '@writ/kernel';
import type { GatewayUnderTest } from './gateway-under-test.ts';

/** Versions with the same messages; some servers have only the older one. */
const VERSIONS = ['grpc.reflection.v1', 'grpc.reflection.v1alpha'];
const LIST_SERVICES = 7;
const SERVICES = 6;
const TIMEOUT_MS = 5_000;

/**
 * The service names that a server lists by reflection (SYS-2). The messages are encoded and decoded by hand: only a few
 * fields of the reflection API are needed.
 */
export async function listServices({
  address,
  bare,
}: GatewayUnderTest): Promise<readonly string[]> {
  const client = new Client(address, bare.credentials, {
    'grpc.enable_http_proxy': 0,
    ...omitUndefined({ 'grpc.ssl_target_name_override': bare.serverName }),
  });
  try {
    for (const version of VERSIONS) {
      try {
        return namesIn(await ask(client, version));
      } catch (error) {
        if (!isUnimplemented(error)) throw error;
      }
    }
    throw new Error('The server does not support reflection.');
  } finally {
    client.close();
  }
}

function ask(client: Client, version: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stream = client.makeBidiStreamRequest<Buffer, Buffer>(
    `/${version}.ServerReflection/ServerReflectionInfo`,
    (bytes) => bytes,
    (bytes) => bytes,
    { deadline: Date.now() + TIMEOUT_MS },
  );
  stream.on('data', resolve);
  stream.on('error', reject);
  stream.on('end', () => reject(new Error('Reflection returned no response.')));
  const request = new BinaryWriter().tag(LIST_SERVICES, WireType.LengthDelimited).string('');
  stream.write(Buffer.from(request.finish()));
  stream.end();
  return promise;
}

function isUnimplemented(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === status.UNIMPLEMENTED;
}

/** ServerReflectionResponse.list_services_response.service[].name. */
function namesIn(response: Uint8Array): readonly string[] {
  return fields(response, SERVICES)
    .flatMap((services) => fields(services, 1))
    .flatMap((service) => fields(service, 1))
    .map((name) => new TextDecoder().decode(name));
}

/** The length-delimited fields with this number. */
function fields(message: Uint8Array, number: number): readonly Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [at, type] = reader.tag();
    if (at === number && type === WireType.LengthDelimited) found.push(reader.bytes());
    else reader.skip(type, at);
  }
  return found;
}
