import { readFileSync } from 'node:fs';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import { connect, type NatsConnection, type TlsOptions } from '@nats-io/transport-node';
import { PreconditionError } from '@writ/kernel';
import { connectionError } from './errors.ts';
import { LiveOutlet } from './live-outlet.ts';
import type { NatsSettings } from './options.ts';
import { ensureStreams } from './streams.ts';

const OLDEST: readonly [number, number] = [2, 9];
const PING_EVERY_MS = 10_000;

/** One connection to a suitable server. */
export interface NatsSession {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly live: LiveOutlet;
  /** Version of the server. */
  readonly version: string;
}

/**
 * Connects, checks the server, and creates or checks the streams.
 * @throws UnavailableError BUS_UNREACHABLE, BUS_STREAM_MISSING, UnauthenticatedError BUS_CREDENTIALS_REJECTED,
 *   PermissionDeniedError BUS_PERMISSION_DENIED, PreconditionError INVALID_TLS_FILE, BUS_SERVER_TOO_OLD,
 *   BUS_JETSTREAM_DISABLED, BUS_STREAM_MISMATCH, BUS_FEATURE_UNSUPPORTED, BUS_SETTING_REJECTED, BUS_DURABLE_MISMATCH,
 *   BUS_CONSUMER_MISMATCH
 */
export async function openSession(settings: NatsSettings): Promise<NatsSession> {
  let connection: NatsConnection | undefined;
  try {
    connection = await connectTo(settings);
    const version = checkServer(connection);
    const timeout = settings.requestTimeoutMs;
    // Information about the whole account is not needed, so the credentials need no permission for it.
    const manager = await jetstreamManager(connection, { timeout, checkAPI: false });
    await ensureStreams(manager, settings, version);
    return {
      connection,
      jetstream: jetstream(connection, { timeout }),
      manager,
      live: new LiveOutlet(connection),
      version,
    };
  } catch (error) {
    await connection?.close();
    throw connectionError(error, settings.servers);
  }
}

async function connectTo(settings: NatsSettings): Promise<NatsConnection> {
  const { credentials, requestTimeoutMs } = settings;
  const tls = tlsOptions(settings);
  return await connect({
    servers: [...settings.servers],
    name: settings.name,
    timeout: requestTimeoutMs,
    // NatsLink reconnects, because the checks must run again.
    reconnect: false,
    pingInterval: PING_EVERY_MS,
    maxPingOut: 2,
    ...(credentials && {
      user: credentials.user,
      pass: credentials.password,
      // Each user has a separate inbox, so that no user can read the replies to another user.
      inboxPrefix: `_INBOX.${credentials.user}`,
    }),
    ...(tls && { tls }),
  });
}

function checkServer({ info }: NatsConnection): string {
  const version = info?.version ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    throw new PreconditionError(
      'BUS_SERVER_TOO_OLD',
      `nats-server has version ${version}; version ${OLDEST.join('.')} or newer is required.`,
      { version },
    );
  }
  if (info?.jetstream !== true) {
    throw new PreconditionError(
      'BUS_JETSTREAM_DISABLED',
      'JetStream is disabled on the NATS server; enable it to store messages.',
    );
  }
  return version;
}

/**
 * The TLS options of a connection; undefined if neither a file nor a `tls://` URL requires TLS. With these options a
 * server without TLS is rejected; without them the client library would fall back to cleartext. Files are read for
 * every connection, so that changes apply to the next one.
 */
function tlsOptions({ tls, servers }: NatsSettings): TlsOptions | undefined {
  if (tls === undefined && !servers.some((server) => /^tls:/i.test(server))) return undefined;
  const { caFile, certFile, keyFile } = tls ?? {};
  const hosts = servers.map(hostOf);
  const options = {
    ...(caFile !== undefined && { ca: readPem(caFile, 'WRIT_NATS_CA_FILE') }),
    ...(certFile !== undefined && { cert: readPem(certFile, 'WRIT_NATS_CERT_FILE') }),
    ...(keyFile !== undefined && { key: readPem(keyFile, 'WRIT_NATS_KEY_FILE') }),
    // The client library passes no host name to Node if the server is specified by its IP address.
    checkServerIdentity: (_: string, shown: PeerCertificate): Error | undefined => {
      const problems = hosts.map((host) => checkServerIdentity(host, shown));
      return problems.every(Boolean) ? problems[0] : undefined;
    },
  };
  return options;
}

/** @throws PreconditionError INVALID_TLS_FILE naming the setting */
function readPem(file: string, setting: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw new PreconditionError(
      'INVALID_TLS_FILE',
      `${file} cannot be read (${code}); correct the file or ${setting}.`,
      { file },
      { cause },
    );
  }
}

function hostOf(server: string): string {
  const { hostname } = new URL(server.includes('://') ? server : `nats://${server}`);
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
