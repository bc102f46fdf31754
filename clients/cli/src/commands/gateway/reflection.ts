import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';

const METHOD = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const LIST_SERVICES = 7;
const SERVICES = 6;
const TIMEOUT_MS = 5_000;

/**
 * The names of the services that a server tells of by reflection (SYS-2). No package carries the
 * generated code of that frozen contract; two fields of it are enough here.
 */
export async function listServices(address: string): Promise<readonly string[]> {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.enable_http_proxy': 0,
  });
  try {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const stream = client.makeBidiStreamRequest<Buffer, Buffer>(
      METHOD,
      (bytes) => bytes,
      (bytes) => bytes,
      { deadline: Date.now() + TIMEOUT_MS },
    );
    stream.on('data', resolve);
    stream.on('error', reject);
    stream.on('end', () => reject(new Error('Reflection gave no answer.')));
    stream.write(
      Buffer.from(
        new BinaryWriter().tag(LIST_SERVICES, WireType.LengthDelimited).string('').finish(),
      ),
    );
    stream.end();
    return namesIn(await promise);
  } finally {
    client.close();
  }
}

/** ServerReflectionResponse.list_services_response.service[].name. */
function namesIn(response: Uint8Array): readonly string[] {
  return fields(response, SERVICES)
    .flatMap((services) => fields(services, 1))
    .flatMap((service) => fields(service, 1))
    .map((name) => new TextDecoder().decode(name));
}

/** The length-delimited fields of this number. */
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
