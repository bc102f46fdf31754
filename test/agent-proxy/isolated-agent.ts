/**
 * An external agent: the unmodified OpenAI client, which reads base URL and key from the environment.
 * `isolated-agent.ts SOCKET PORT ADDRESS…` forwards the loopback port PORT to the Unix socket SOCKET, calls a model,
 * tries to connect to each ADDRESS, and prints an {@link AgentReport} as one line of JSON.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { pipeline } from 'node:stream';
import OpenAI from 'openai';

/** What the agent prints. */
export interface AgentReport {
  readonly answer: string;
  readonly streamed: string;
  /** The addresses that accepted a connection. */
  readonly reached: readonly string[];
  readonly interfaces: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const CONNECT_MS = 10_000;

async function isReached(address: string): Promise<boolean> {
  const [host = '', port = ''] = address.split(':');
  const socket = connect({ host, port: Number(port), timeout: CONNECT_MS });
  const outcome = Promise.withResolvers<boolean>();
  socket.once('connect', () => outcome.resolve(true));
  for (const event of ['timeout', 'error']) socket.once(event, () => outcome.resolve(false));
  try {
    return await outcome.promise;
  } finally {
    socket.destroy();
  }
}

async function report(addresses: readonly string[]): Promise<AgentReport> {
  const openai = new OpenAI({ maxRetries: 0 });
  const asked = {
    model: 'support-model',
    messages: [{ role: 'user' as const, content: 'Hello.' }],
  };
  const whole = await openai.chat.completions.create(asked);
  let streamed = '';
  const stream = await openai.chat.completions.create({ ...asked, stream: true });
  for await (const { choices } of stream) streamed += choices[0]?.delta.content ?? '';
  const tried = await Promise.all(addresses.map(isReached));
  return {
    answer: whole.choices[0]?.message.content ?? '',
    streamed,
    reached: addresses.filter((_, index) => tried[index]),
    interfaces: Object.keys(networkInterfaces()),
    environment: process.env,
  };
}

if (import.meta.main) {
  const [socket = '', port = '', ...addresses] = process.argv.slice(2);
  const server = createServer((client) => {
    const upstream = connect(socket);
    pipeline(client, upstream, client, () => undefined);
  });
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
  console.log(JSON.stringify(await report(addresses)));
  // Idle keep-alive connections of the client would keep the process running.
  process.exit(0);
}
