import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type DescService } from '@bufbuild/protobuf';
import {
  type AgentCredentials,
  AgentCredentialsSchema,
} from '@writ/contracts/writ/supervision/v1/credentials_pb';
import {
  contractPriority,
  keyRoute,
  mintAgentCredentials,
  mintSlotGrant,
  openSigner,
  type ServerName,
  type ServiceName,
  type Signer,
  serviceTokens,
} from '@writ/identity';
import { type AgentRef, type Clock, Priority, systemClock } from '@writ/kernel';
import {
  type ClosableRpcClient,
  createRpcClient,
  createRpcServer,
  type Gate,
  type Route,
  type RpcClientOptions,
  type RpcServer,
  type ServerTls,
} from '@writ/rpc';
import { createTelemetry, type Telemetry } from '@writ/telemetry';

/** Options of {@link startKeyPeer}. */
export interface KeyPeerOptions {
  /** Folder of the signing key; default: a temporary folder that `close()` deletes. */
  readonly keyDir?: string;
  /**
   * Clock for the tokens, calls and responses of this peer, normally the clock of the service under test; default: the
   * system clock.
   */
  readonly clock?: Clock;
  /** Additional routes besides KeyService: fake RPCs of the service that this peer replaces. */
  readonly routes?: readonly Route[];
  /** Authorizes calls to the routes; default: every caller. */
  readonly gate?: Gate;
  /** Default: cleartext. */
  readonly tls?: ServerTls;
}

/** Claims that {@link KeyPeer.serviceToken} puts into the token. */
export interface PeerTokenOptions {
  /** Default `test-1`. */
  readonly replica?: string;
  /** Tenants that the caller serves; default: all (SYS-6). */
  readonly tenants?: readonly string[];
}

/** The agent of {@link KeyPeer.agentCredentials}. */
export interface PeerAgent {
  readonly tenant: string;
  readonly runId: string;
  readonly agent: AgentRef;
  /** Default `session-1`. */
  readonly sessionId?: string;
  readonly parent?: AgentRef;
  /** Default 0. */
  readonly depth?: number;
  /** Default NORMAL. */
  readonly priority?: Priority;
  readonly models?: readonly string[];
  readonly tools?: readonly string[];
}

/** The holder of {@link KeyPeer.slotGrant}. */
export interface PeerHolder {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
  /** Default NORMAL. */
  readonly priority?: Priority;
  /** Default 0. */
  readonly epoch?: bigint;
}

/** A fake peer service: a signing key, a KeyService that publishes it, and tokens. */
export interface KeyPeer {
  readonly service: ServiceName;
  readonly signer: Signer;
  /** Folder of its key file. */
  readonly keyDir: string;
  /** `host:port` of its KeyService. */
  readonly address: string;
  /** Returns a source of service tokens for `audience`, as `createRpcClient` takes it. */
  serviceToken(audience: ServerName, options?: PeerTokenOptions): () => Promise<string>;
  /** Creates a client of `audience` that authenticates as this peer; `close()` closes it. */
  client<S extends DescService>(
    service: S,
    to: { readonly audience: ServerName; readonly address: RpcClientOptions['address'] },
    options?: PeerTokenOptions,
  ): ClosableRpcClient<S>;
  /** Issues an agent's four tokens; services accept them only when this peer was started as `supervisor`. */
  agentCredentials(agent: PeerAgent, ttlMs?: number): Promise<AgentCredentials>;
  /** Issues a slot grant; services accept it only when this peer was started as `spawn-budget`. */
  slotGrant(holder: PeerHolder, ttlMs?: number): Promise<string>;
  /** Closes its clients and its server, and deletes a temporary key folder. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts a fake peer service with a real signing key and KeyService on a free loopback port. In tests, a service trusts
 * only such peers as callers: pass `addressOf(...peers)` to `createX`, and call the service through
 * {@link KeyPeer.client}.
 */
export async function startKeyPeer(
  service: ServiceName,
  options: KeyPeerOptions = {},
): Promise<KeyPeer> {
  const { clock = systemClock, routes = [], gate = async () => ({}), tls } = options;
  const keyDir = options.keyDir ?? (await mkdtemp(join(tmpdir(), `writ-${service}-`)));
  const removeKeys = async () => {
    if (options.keyDir === undefined) await rm(keyDir, { recursive: true, force: true });
  };
  const telemetry = createTelemetry({ service, logLevel: 'silent' });
  try {
    const signer = await openSigner({ service, keyDir, clock });
    const server = await createRpcServer({
      host: '127.0.0.1',
      port: 0,
      routes: [keyRoute(signer), ...routes],
      gate,
      telemetry,
      tls,
      clock,
    });
    server.setServing(true);
    return keyPeer(signer, { keyDir, server, telemetry, removeKeys });
  } catch (error) {
    await removeKeys();
    throw error;
  }
}

function keyPeer(
  signer: Signer,
  {
    keyDir,
    server,
    telemetry,
    removeKeys,
  }: {
    readonly keyDir: string;
    readonly server: RpcServer;
    readonly telemetry: Telemetry;
    readonly removeKeys: () => Promise<void>;
  },
): KeyPeer {
  const clients = new Set<{ close(): void }>();
  const serviceToken: KeyPeer['serviceToken'] = (audience, { replica = 'test-1', tenants } = {}) =>
    serviceTokens(signer, { audience, replica, ...(tenants === undefined ? {} : { tenants }) });
  return {
    service: signer.service,
    signer,
    keyDir,
    address: server.address,
    serviceToken,
    client(service, { audience, address }, options) {
      const client = createRpcClient(service, {
        address,
        telemetry,
        serviceToken: serviceToken(audience, options),
        clock: signer.clock,
      });
      clients.add(client);
      return client;
    },
    async agentCredentials(agent, ttlMs) {
      const { priority = Priority.NORMAL, models = [], tools = [], ...rest } = agent;
      const claims = {
        sessionId: 'session-1',
        ...rest,
        priority: contractPriority(priority),
        models: [...models],
        tools: [...tools],
      };
      return create(AgentCredentialsSchema, await mintAgentCredentials(signer, claims, ttlMs));
    },
    async slotGrant({ priority = Priority.NORMAL, ...holder }, ttlMs) {
      const claims = { ...holder, priority: contractPriority(priority) };
      return (await mintSlotGrant(signer, claims, ttlMs)).token;
    },
    async close() {
      for (const client of clients) client.close();
      clients.clear();
      await server.close(0);
      await telemetry.shutdown();
      await removeKeys();
    },
  };
}
