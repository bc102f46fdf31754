import type { DescMethod } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';

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
 */
export function rawCall(
  address: string,
  method: DescMethod,
  request: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  streamMs = LIMIT_MS,
): Promise<RawAnswer> {
  const client = clients.get(address) ?? new Client(address, credentials.createInsecure());
  clients.set(address, client);
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

/** Closes every connection that was made. */
export function closeRawCalls(): void {
  for (const client of clients.values()) client.close();
  clients.clear();
}
