import type { DescMethod } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';

/** What is shown in the TLS handshake, in PEM; without `cert` nothing. */
export interface RawTls {
  readonly ca: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** What came of a call: its status, and every byte that was answered. */
export interface RawAnswer {
  readonly code: number;
  readonly sentence: string;
  readonly bytes: Buffer;
}

const clients = new Map<string, Client>();
const LIMIT_MS = 10_000;

/**
 * Calls a method with bytes and metadata as they are, over grpc-js without any of Writ's own code.
 * @param streamMs after how long a stream that may be endless is left
 * @param tls left out, the call is made in cleartext
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
          sentence: error?.details ?? '',
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
      answer({ code, sentence: details, bytes: Buffer.concat(chunks) }),
    );
  });
}

function connect(address: string, tls: RawTls | undefined): Client {
  if (tls === undefined) return new Client(address, credentials.createInsecure());
  const { ca, cert = null, key = null } = tls;
  // Which service answers is not what is tried here.
  const anyHost = { checkServerIdentity: () => undefined };
  const options = { 'grpc.ssl_target_name_override': 'service.writ' };
  return new Client(address, credentials.createSsl(ca, key, cert, anyHost), options);
}

/** Closes every connection that was made. */
export function closeRawCalls(): void {
  for (const client of clients.values()) client.close();
  clients.clear();
}
