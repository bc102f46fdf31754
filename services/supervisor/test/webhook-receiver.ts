import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { vi } from 'vitest';

/** A secret of Standard Webhooks. */
export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** A request that the receiver got. */
interface Received {
  readonly id: string;
  readonly path: string;
  readonly body: string;
  /** Whether the signature is that of {@link SECRET}. */
  readonly isSigned: boolean;
}

/** A real HTTP server that receives notifications, and answers with the next of `statuses`, else with 204. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  readonly statuses: number[] = [];
  /** Paths whose requests get no response. */
  readonly hanging = new Set<string>();
  readonly #server = createServer(async (request, response) => {
    const body = await text(request);
    const {
      'webhook-id': id = '',
      'webhook-timestamp': at,
      'webhook-signature': signature,
    } = request.headers;
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
    const expected = createHmac('sha256', key).update(`${String(id)}.${String(at)}.${body}`);
    const isSigned = signature === `v1,${expected.digest('base64')}`;
    this.received.push({ id: String(id), path: request.url ?? '', body, isSigned });
    if (this.hanging.has(request.url ?? '')) return;
    response.writeHead(this.statuses.shift() ?? 204).end();
  });

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** A notifications file of tenant acme, with an endpoint at `path` and further keys. */
  file(more = '', path = '/hook'): string {
    return `
console_url: https://writ.example/
allowed_hosts: ["127.0.0.1:${this.port}"]
tenants:
  acme:
    - name: on-call
      url: http://127.0.0.1:${this.port}${path}
      secret_env: HOOK_SECRET
      ${more}
`;
  }

  /** Resolves with the requests once there are `count`. */
  async requests(count: number): Promise<readonly Received[]> {
    const missing = () => {
      if (this.received.length < count) throw new Error(`${this.received.length} requests.`);
    };
    // An attempt of a process that was killed is repeated after 30 seconds.
    await vi.waitFor(missing, { timeout: 90_000 });
    return this.received;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
