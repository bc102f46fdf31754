import { InvalidRequestError } from '@writ/kernel';
import type { WebRequest, WebResponse } from '@writ/rpc/edge';

/** Largest body, bytes: the limit of a model call in the contract of the meter. */
const MAX_BODY = 3 * 1024 * 1024;

/**
 * Returns a function that reads the body of a request at its first call, and returns it at every call.
 * @throws InvalidRequestError BODY_TOO_LARGE (from the function)
 */
export function bodyOf(request: WebRequest): () => Promise<Buffer<ArrayBuffer>> {
  let body: Promise<Buffer<ArrayBuffer>> | undefined;
  return () => {
    body ??= readBody(request);
    return body;
  };
}

async function readBody(request: WebRequest): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = [];
  let size = 0;
  // The rest of a body that is too large is read and dropped: if the connection were closed with unread bytes, the
  // client would not receive the error.
  for await (const part of request.iterator({ destroyOnReturn: false })) {
    const bytes = part as Buffer;
    size += bytes.byteLength;
    if (size > MAX_BODY) {
      setImmediate(() => request.resume());
      throw new InvalidRequestError(
        'BODY_TOO_LARGE',
        `The request is larger than ${MAX_BODY} bytes.`,
        { field: 'body', max_bytes: String(MAX_BODY) },
      );
    }
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}

/** Sends a JSON answer. */
export function sendJson(
  response: WebResponse,
  body: Uint8Array | object,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(bytes.byteLength),
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(bytes);
}
