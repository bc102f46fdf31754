import { randomBytes } from 'node:crypto';
import { ConfigError, type Environment, readEnv, variable } from '@writ/config';
import type { TlsFileNames } from '@writ/rpc';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Settings of agent-proxy. Times are in milliseconds. */
export interface AgentProxyConfig {
  /** The listener for services; port 0 selects a free one. */
  readonly host: string;
  readonly port: number;
  /** The listener for external agents. */
  readonly endpoint: { readonly host: string; readonly port: number };
  /** The TLS files of that listener; undefined = cleartext. */
  readonly endpointTls: TlsFileNames | undefined;
  /** Values of the Host header that are accepted, without port; empty for localhost and any IP address. */
  readonly hosts: readonly string[];
  /** Parent folder of the keys and, without PostgreSQL, of the SQLite file. */
  readonly dataDir: string;
  readonly keyRotationMs?: number | undefined;
  readonly clockLeewayMs?: number | undefined;
  readonly store: StoreLocation;
  /** Name of this process among the replicas. */
  readonly replica: string;
  /** Tenants whose external agents this process serves; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /** Maximum number of concurrent requests of one agent. */
  readonly maxRequestsPerAgent: number;
  /**
   * Default idle timeout: the run of an agent ends after this time without a request, or up to a quarter later. The
   * options of the agent may set another timeout.
   */
  readonly idleMs: number;
  /** Default idle timeout of a sub-agent; its end does not end the run. */
  readonly subAgentIdleMs: number;
  /**
   * Interval of the sweeps that keep agents with requests in progress active, end idle agents and complete decided
   * tasks.
   */
  readonly sweepMs: number;
  /** How long the run of an agent key is cached, and so how long a revoked key is still accepted. */
  readonly keyCacheMs: number;
  /** Age from which a slot grant is renewed before it is used; less than its lifetime. */
  readonly grantMs: number;
  /** Time without a request that needs the slot, after which the slot is reported as waiting. */
  readonly suspendMs: number;
  /** How long a model call continues after its client has disconnected. */
  readonly disconnectGraceMs: number;
  /** How long the client may accept no data before its connection is closed. */
  readonly slowReaderMs: number;
  /** Time without an event after which a stream is kept open by a ping. */
  readonly keepAliveMs: number;
  readonly drainMs: number;
}

/** Default settings; tests start from them. */
export const AGENT_PROXY_DEFAULTS = {
  host: '127.0.0.1',
  endpointTls: undefined,
  hosts: [],
  tenants: [],
  maxRequestsPerAgent: 64,
  idleMs: 30 * 60_000,
  subAgentIdleMs: 5 * 60_000,
  sweepMs: 1_000,
  keyCacheMs: 5_000,
  grantMs: 3_000,
  suspendMs: 5_000,
  disconnectGraceMs: 30_000,
  slowReaderMs: 60_000,
  keepAliveMs: 15_000,
  drainMs: 5_000,
} as const;

/**
 * Reads the settings of an agent-proxy process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readAgentProxyConfig(env: Environment = process.env): AgentProxyConfig {
  const { endpointHost, endpointPort, certFile, keyFile, ...values } = readEnv(env, {
    ...listenerVariables('agent-proxy'),
    endpointHost: variable.string('WRIT_AGENT_PROXY_ENDPOINT_HOST', {
      default: AGENT_PROXY_DEFAULTS.host,
      about: 'the address of the listener for external agents',
    }),
    endpointPort: variable.port('WRIT_AGENT_PROXY_ENDPOINT_PORT', {
      default: 8081,
      about: 'the port of the listener for external agents',
    }),
    certFile: variable.string('WRIT_AGENT_PROXY_TLS_CERT_FILE', {
      optional: true,
      about: 'PEM file with the certificate of the listener for external agents',
    }),
    keyFile: variable.string('WRIT_AGENT_PROXY_TLS_KEY_FILE', {
      optional: true,
      about: 'PEM file with the key of that certificate',
    }),
    hosts: variable.list('WRIT_AGENT_PROXY_HOSTS', {
      default: [...AGENT_PROXY_DEFAULTS.hosts],
      item: /^[a-zA-Z0-9.:[\]-]{1,253}$/,
      about:
        'host names by which external agents reach agent-proxy; default: localhost and any IP address',
    }),
    tenants: variable.list('WRIT_AGENT_PROXY_TENANTS', {
      default: [...AGENT_PROXY_DEFAULTS.tenants],
      item: /^[a-z0-9_-]{1,64}$/,
      about: 'tenants whose external agents this process serves; default: all',
    }),
  });
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new ConfigError('The environment', [
      'WRIT_AGENT_PROXY_TLS_CERT_FILE and WRIT_AGENT_PROXY_TLS_KEY_FILE must be set together.',
    ]);
  }
  return {
    ...AGENT_PROXY_DEFAULTS,
    ...values,
    endpoint: { host: endpointHost, port: endpointPort },
    endpointTls:
      certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    store: readStoreLocation(env, 'agent-proxy', values.dataDir),
    replica: `agent-proxy-${randomBytes(4).toString('hex')}`,
  };
}
