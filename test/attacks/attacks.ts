import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { WritClient } from '@writ/client';
import { newId } from '@writ/kernel';
import { untilAdmitted } from '../load/admitted.ts';
import type { HostileServer } from './hostile-server.ts';

/** The platform that is attacked. */
export interface AttackTarget {
  /** URL of the public listener. */
  readonly edgeUrl: string;
  /** Addresses of the listeners for services. */
  readonly internal: readonly string[];
  /** The key of the attacker and a client with it. */
  readonly attacker: { readonly key: string; readonly client: WritClient };
  readonly hostile: HostileServer;
}

/** An attack. */
export interface Attack {
  readonly name: string;
  /** Whether the attack targets the ports directly and needs no run. */
  readonly isAtPorts?: true;
  /** Starts the attack; once it is in progress, resolves with a function that ends it. */
  start(platform: AttackTarget): Promise<() => Promise<void>>;
}

/** Streams per connection. */
const PER_CONNECTION = 1_000;
/** The connections that a port accepts at once. */
const CONNECTIONS = 10_000;
/** Time limit for serving a new connection on a full port; it usually takes about one second. */
const SERVED_MS = 10_000;

/** All attacks: on the ports of the platform, or by a model or tool that the platform calls. */
export const ATTACKS: readonly Attack[] = [
  {
    name: 'unfinished bodies over HTTP/2',
    isAtPorts: true,
    start: (platform) => unfinishedBodies(platform),
  },
  {
    name: 'unfinished bodies over HTTP/1.1',
    isAtPorts: true,
    start: (platform) => unfinishedPosts(platform),
  },
  { name: 'idle connections', isAtPorts: true, start: (platform) => idleConnections(platform) },
  { name: 'watches of one key', isAtPorts: true, start: (platform) => watches(platform) },
  { name: 'stream resets', isAtPorts: true, start: (platform) => resets(platform) },
  {
    name: 'anonymous health watches',
    isAtPorts: true,
    start: (platform) => healthWatches(platform),
  },
  { name: 'starts of one tenant', start: (platform) => starts(platform) },
  { name: 'a compressed answer of a model', start: (platform) => runWith(platform, 'bomb') },
  { name: 'an endless answer of a model', start: (platform) => runWith(platform, 'endless') },
  {
    name: 'arguments that make a pattern backtrack',
    start: (platform) => runWith(platform, 'pattern'),
  },
  { name: 'nested arguments', start: (platform) => runWith(platform, 'nested') },
];

async function unfinishedBodies(platform: AttackTarget) {
  return await openStreams(platform.edgeUrl, 5, {
    ':method': 'POST',
    ':path': '/writ.run.v1.RunService/GetRun',
    'content-type': 'application/proto',
    authorization: `Bearer ${platform.attacker.key}`,
  });
}

async function watches(platform: AttackTarget) {
  const headers = {
    ':method': 'POST',
    ':path': '/writ.approval.v1.ApprovalService/WatchApprovals',
    'content-type': 'application/connect+proto',
    'connect-protocol-version': '1',
    authorization: `Bearer ${platform.attacker.key}`,
  };
  // An empty message in its envelope.
  return await openStreams(platform.edgeUrl, 5, headers, Buffer.alloc(5));
}

async function healthWatches(platform: AttackTarget) {
  const headers = {
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Watch',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  const ends = await Promise.all(
    platform.internal.map((address) =>
      openStreams(`http://${address}`, 250, headers, Buffer.alloc(5), 4),
    ),
  );
  for (const address of platform.internal) await checkHealth(address);
  return async () => void (await Promise.all(ends.map((end) => end())));
}

/** Resolves when the server serves a new connection. @throws when a health check still fails after {@link SERVED_MS} */
async function untilServed(address: string): Promise<void> {
  const endsAt = performance.now() + SERVED_MS;
  for (;;) {
    try {
      return await checkHealth(address);
    } catch (error) {
      if (performance.now() > endsAt) throw error;
      await pause(50);
    }
  }
}

/** Sends a health check on a new connection. @throws when the server does not report SERVING */
async function checkHealth(address: string): Promise<void> {
  const session = await opened(`http://${address}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.end(Buffer.alloc(5));
  let status: unknown;
  stream.on('trailers', (trailers) => {
    status = trailers['grpc-status'];
  });
  stream.on('response', (headers) => {
    status ??= headers['grpc-status'];
  });
  stream.resume();
  await once(stream, 'close');
  session.destroy();
  if (String(status) !== '0')
    throw new Error(`Health/Check at ${address} answers ${String(status)}.`);
}

/** Opens streams that never end; resolves when the server has received them. */
async function openStreams(
  url: string,
  connections: number,
  headers: Readonly<Record<string, string>>,
  body?: Buffer,
  streams = PER_CONNECTION,
): Promise<() => Promise<void>> {
  const sessions: ClientHttp2Session[] = [];
  for (let connection = 0; connection < connections; connection += 1) {
    const session = await opened(url);
    sessions.push(session);
    for (let count = 0; count < streams; count += 1) {
      const stream = session.request(headers, { endStream: false });
      stream.on('error', () => undefined);
      stream.resume();
      if (body !== undefined) stream.write(body);
      if (body !== undefined && headers['content-type'] !== 'application/proto') stream.end();
    }
    await received(session);
  }
  return async () => {
    for (const session of sessions) session.destroy();
  };
}

async function resets(platform: AttackTarget) {
  const sessions: ClientHttp2Session[] = [];
  for (let connection = 0; connection < 4; connection += 1) {
    const session = await opened(platform.edgeUrl);
    sessions.push(session);
    for (let count = 0; count < 15_000 && !session.destroyed; count += 1) {
      const stream: ClientHttp2Stream = session.request({ ':method': 'POST', ':path': '/' });
      stream.on('error', () => undefined);
      stream.close(constants.NGHTTP2_CANCEL);
      if (count % 500 === 499) await received(session);
    }
  }
  return async () => {
    for (const session of sessions) session.destroy();
  };
}

async function unfinishedPosts(platform: AttackTarget) {
  const { hostname, port, host } = new URL(platform.edgeUrl);
  const sockets: Socket[] = [];
  for (let count = 0; count < 500; count += 1) {
    const socket = connectTcp(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(
      `POST /writ.run.v1.RunService/GetRun HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
        `authorization: Bearer ${platform.attacker.key}\r\ncontent-length: 1000\r\n\r\n{`,
    );
    sockets.push(socket);
  }
  await Promise.all(sockets.map((socket) => (socket.connecting ? once(socket, 'connect') : null)));
  return async () => {
    for (const socket of sockets) socket.destroy();
  };
}

/** Opens as many connections as the port accepts, and sends nothing. */
async function idleConnections(platform: AttackTarget) {
  const { hostname, port } = new URL(platform.edgeUrl);
  const sockets: Socket[] = [];
  while (sockets.length < CONNECTIONS) {
    const opening = Array.from({ length: 500 }, () => connectTcp(Number(port), hostname));
    for (const socket of opening) socket.on('error', () => undefined);
    sockets.push(...opening);
    await Promise.all(opening.map((socket) => once(socket, 'connect').catch(() => undefined)));
  }
  await untilServed(new URL(platform.edgeUrl).host);
  return async () => {
    for (const socket of sockets) socket.destroy();
  };
}

/** Starts more runs at once than the queue of a tenant holds. */
async function starts(platform: AttackTarget) {
  const { client } = platform.attacker;
  const outcomes = Array.from({ length: 150 }, () =>
    client.runs
      .startRun({ requestId: newId('req'), agent: 'counter-2', goal: 'Count.' })
      .catch(() => undefined),
  );
  await Promise.race(outcomes);
  return async () => void (await Promise.all(outcomes));
}

/** Runs the attacker's agent with a hostile model; resolves when the model has been called. */
async function runWith(platform: AttackTarget, model: string) {
  const { client } = platform.attacker;
  const before = platform.hostile.asked.get(model) ?? 0;
  const request = {
    requestId: newId('req'),
    agent: `${model}-agent`,
    goal: 'Attack.',
  };
  const { run } = await untilAdmitted(() => client.runs.startRun(request));
  const runId = run?.runId ?? '';
  while ((platform.hostile.asked.get(model) ?? 0) === before) {
    const { run: now } = await client.runs.getRun({ runId });
    if (now?.result !== undefined) throw new Error(`The run ended with ${now.result.stopReason}.`);
  }
  return async () => {
    await client.runs.cancelRun({ requestId: newId('req'), runId });
    await Array.fromAsync(client.runs.watchRun({ runId }));
  };
}

/**
 * Opens an HTTP/2 session.
 * @throws when the server closes the connection immediately, as a server near its connection limit does
 */
async function opened(url: string): Promise<ClientHttp2Session> {
  const session = connect(url);
  session.on('error', () => undefined);
  const closed = new AbortController();
  session.once('close', () => closed.abort());
  // The client queues streams above the limit of the server only after it has received the settings; earlier, excess
  // streams would make the server end the connection.
  await once(session, 'remoteSettings', { signal: closed.signal });
  return session;
}

/** Resolves when the server has answered a ping, or has closed the connection. */
async function received(session: ClientHttp2Session): Promise<void> {
  if (session.destroyed) return;
  const answered = new AbortController();
  const closed = once(session, 'close', { signal: answered.signal }).catch(() => undefined);
  await Promise.race([closed, new Promise<void>((resolve) => session.ping(() => resolve()))]);
  answered.abort();
}
