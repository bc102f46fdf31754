import { ConfigError, type Environment, readEnv, rejectMisspelt, variable } from '@writ/config';
import type { ServiceName, WorkerPool } from '@writ/identity';
import { defaultPort, variableName } from './names.ts';
import { type PeerSettings, readPeerSettings } from './peer-settings.ts';
import { readTelemetrySettings, type TelemetrySettings } from './telemetry-settings.ts';

/** Settings of the connection to the NATS servers, through which processes exchange events. */
export interface NatsAccess {
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/** The settings that every service process has in addition to the settings of its service. */
export interface ProcessSettings extends PeerSettings {
  readonly addressOf: (service: ServiceName) => string;
  readonly workerPools: readonly WorkerPool[];
  readonly telemetry: TelemetrySettings;
  /** Absent if events are not shared with other processes. */
  readonly nats?: NatsAccess;
}

/**
 * Reads the addresses of the other services and the settings of TLS, NATS and telemetry.
 *
 * @throws ConfigError naming the malformed variables of the first group that has any (NATS, addresses, worker pools,
 *   transport, telemetry), or else the variables that look like misspelled settings
 */
export function readProcessSettings(env: Environment = process.env): ProcessSettings {
  const nats = readNatsAccess(env);
  const addresses = readEnv(env, {
    supervisor: address('supervisor'),
    'spawn-budget': address('spawn-budget'),
    'execution-meter': address('execution-meter'),
    'tool-gateway': address('tool-gateway'),
    'agent-worker': address('agent-worker'),
    'agent-proxy': address('agent-proxy'),
  });
  const { pools } = readEnv(env, {
    pools: variable.list('WRIT_AGENT_WORKER_POOLS', {
      default: [],
      item: /^[a-z0-9_-]{1,64}=[^\s,=]+:\d{1,5}$/,
      about:
        'tenants with dedicated workers, as tenant=host:port, repeated for each replica; WRIT_AGENT_WORKER_ADDRESS serves the other tenants',
    }),
  });
  const settings = {
    ...readPeerSettings(env),
    addressOf: (service: ServiceName) => addresses[service],
    workerPools: poolsFrom(pools),
    ...(nats && { nats }),
    telemetry: readTelemetrySettings(env, 'info'),
  };
  // Called last, because the service reads its own settings before the settings of its process, so every known variable
  // has been read.
  rejectMisspelt(env);
  return settings;
}

/**
 * Reads how to connect to NATS; undefined without WRIT_NATS_URL.
 * @throws ConfigError naming every variable that is malformed, or that is missing but required by another one
 */
export function readNatsAccess(env: Environment): NatsAccess | undefined {
  const nats = readEnv(env, {
    servers: variable.list('WRIT_NATS_URL', {
      optional: true,
      about: 'the NATS servers for events; a service connects to one of them',
    }),
    user: variable.string('WRIT_NATS_USER', {
      optional: true,
      about: 'the NATS user; default: the name of the service',
    }),
    password: variable.string('WRIT_NATS_PASSWORD', {
      optional: true,
      about: 'the password of the NATS user',
    }),
    caFile: file('WRIT_NATS_CA_FILE', 'the certificate authorities of the NATS server'),
    certFile: file('WRIT_NATS_CERT_FILE', 'the client certificate for the NATS server'),
    keyFile: file('WRIT_NATS_KEY_FILE', 'the key of that certificate'),
  });
  const { servers, user, password, certFile, keyFile } = nats;
  if (servers === undefined) return undefined;
  const problems: string[] = [];
  if (user !== undefined && password === undefined)
    problems.push(
      'WRIT_NATS_USER is set without WRIT_NATS_PASSWORD; set the password of the user.',
    );
  if ((certFile === undefined) !== (keyFile === undefined))
    problems.push(
      'WRIT_NATS_CERT_FILE and WRIT_NATS_KEY_FILE must be set together; set both or none.',
    );
  if (problems.length > 0) throw new ConfigError('The environment', problems);
  return { ...nats, servers };
}

/** Groups tenants with the same addresses into one pool. */
function poolsFrom(entries: readonly string[]): WorkerPool[] {
  const addresses = new Map<string, string[]>();
  for (const entry of entries) {
    const [tenant = '', address = ''] = entry.split('=');
    addresses.set(tenant, [...(addresses.get(tenant) ?? []), address]);
  }
  const pools = new Map<string, string[]>();
  for (const [tenant, replicas] of addresses) {
    const address = [...new Set(replicas)].sort().join(', ');
    pools.set(address, [...(pools.get(address) ?? []), tenant]);
  }
  return Array.from(pools, ([address, tenants]) => ({ address, tenants }));
}

function file(name: string, about: string) {
  return variable.string(name, { optional: true, about: `a PEM file: ${about}` });
}

function address(service: ServiceName) {
  return variable.string(variableName(service, 'ADDRESS'), {
    default: `127.0.0.1:${defaultPort(service)}`,
    pattern: /^[^\s,]+:\d{1,5}(\s*,\s*[^\s,]+:\d{1,5})*$/,
    about: 'the addresses of the replicas of this service, each as host:port',
  });
}
