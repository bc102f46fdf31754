import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A request of a client and its response. */
export interface Exchange {
  readonly path: string;
  readonly status: number | undefined;
  /** The part of the response body that has been received. */
  answer: string;
}

/** Starts a server that forwards requests to agent-proxy and records the responses in order. */
export async function recordingServer(baseUrl: string) {
  const exchanges: Exchange[] = [];
  const { hostname, port } = new URL(baseUrl);
  const server = createServer((incoming, response) => {
    const { method, url: path = '', headers } = incoming;
    const options = { hostname, port, method, path, headers };
    const forwarded = send(options, (answer) => {
      const exchange: Exchange = { path, status: answer.statusCode, answer: '' };
      exchanges.push(exchange);
      answer.setEncoding('utf8').on('data', (part: string) => (exchange.answer += part));
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    // Aborts the forwarded request when the client disconnects.
    response.once('close', () => forwarded.destroy());
    forwarded.once('error', () => response.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${address.port}`, exchanges };
}
