import type { DescMethod } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';

/** TLS settings of a call, in PEM; without `cert`, the client presents no certificate. */
export interface RawTls {
  readonly ca: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** The status of a call and every byte of its response. */
export interface RawAnswer {
  readonly code: number;
  readonly message: string;
  readonly bytes: Buffer;
}

const clients = new Map<string, Client>();
const LIMIT_MS = 10_000;

/**
 * Calls a method with raw bytes and metadata over grpc-js, without the client library.
 * @param streamMs how long to read from a stream that may be endless
 * @param tls default cleartext
 */
export function rawCall(
  address: string,
  method: DescMethod,
  request: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  streamMs = LIMIT_MS,
  tls?: RawTls,
): Promise<RawAnswer> {
  const key = `${address} ${tls?.cert} ${tls?.ca}`;
  const client = clients.get(key) ?? connect(address, tls);
  clients.set(key, client);
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const path = `/${method.parent.typeName}/${method.name}`;
  const asBytes = (bytes: Buffer) => bytes;
  const isUnary = method.methodKind === 'unary';
  const options = { deadline: Date.now() + (isUnary ? LIMIT_MS : streamMs) };
  const body = Buffer.from(request);
  return new Promise((answer) => {
    if (isUnary) {
      const given = [path, asBytes, asBytes, body, metadata, options] as const;
      client.makeUnaryRequest(...given, (error, response) =>
        answer({
          code: error?.code ?? status.OK,
          message: error?.details ?? '',
          bytes: response ?? Buffer.alloc(0),
        }),
      );
      return;
    }
    const chunks: Buffer[] = [];
    const stream = client.makeServerStreamRequest(path, asBytes, asBytes, body, metadata, options);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => undefined);
    stream.on('status', ({ code, details }) =>
      answer({ code, message: details, bytes: Buffer.concat(chunks) }),
    );
  });
}

function connect(address: string, tls: RawTls | undefined): Client {
  if (tls === undefined) return new Client(address, credentials.createInsecure());
  const { ca, cert = null, key = null } = tls;
  // The host name is not verified, because the address may belong to any service.
  const anyHost = { checkServerIdentity: () => undefined };
  const options = { 'grpc.ssl_target_name_override': 'service.writ' };
  return new Client(address, credentials.createSsl(ca, key, cert, anyHost), options);
}

/** Closes every connection. */
export function closeRawCalls(): void {
  for (const client of clients.values()) client.close();
  clients.clear();
}
