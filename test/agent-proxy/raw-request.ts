import { type ClientRequest, request } from 'node:http';

/** A request that a standard client would not send. */
export interface RawRequest {
  readonly url: string | URL;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends a request, optionally with a different Host header, and returns the status and the body of the response. */
export async function rawRequest(
  raw: RawRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const call = begin(raw);
  call.once('error', reject);
  call.once('response', (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (part: string) => {
      text += part;
    });
    response.once('error', reject);
    response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
  });
  call.end(raw.body);
  return await promise;
}

/** Starts a request without its body; the test can send a part of the body or destroy the request. */
export function begin({ url, method = 'POST', headers = {}, body }: RawRequest): ClientRequest {
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const sent = { 'content-type': 'application/json', ...length, ...headers };
  return request(url, { method, headers: sent, agent: false });
}
