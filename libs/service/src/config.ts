import { type Environment, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { defaultPort, variableName } from './names.ts';
import { readTelemetrySettings, type TelemetrySettings } from './telemetry-settings.ts';
import { readWireSettings, type WireSettings } from './wire-settings.ts';

/** The NATS server that carries events between processes. */
export interface NatsAccess {
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/** What a service needs besides its own settings when it is a process of its own. */
export interface ProcessSettings extends WireSettings {
  readonly addressOf: (service: ServiceName) => string;
  readonly telemetry: TelemetrySettings;
  /** Absent when the service shares its events with no other process. */
  readonly nats?: NatsAccess;
}

/**
 * Reads where the other services are, and what is logged and traced.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readProcessSettings(env: Environment = process.env): ProcessSettings {
  const nats = readEnv(env, {
    servers: variable.list('WRIT_NATS_URL', {
      optional: true,
      about: 'the NATS servers that carry events, any of which will do',
    }),
    user: variable.string('WRIT_NATS_USER', {
      optional: true,
      about: "the name to log in to NATS with; the service's own unless it is set",
    }),
    password: variable.string('WRIT_NATS_PASSWORD', {
      optional: true,
      about: 'the password to log in to NATS with',
    }),
    caFile: file('WRIT_NATS_CA_FILE', 'the authorities that vouch for the NATS server'),
    certFile: file('WRIT_NATS_CERT_FILE', 'the certificate to show to the NATS server'),
    keyFile: file('WRIT_NATS_KEY_FILE', 'the key of that certificate'),
  });
  const addresses = readEnv(env, {
    supervisor: address('supervisor'),
    'spawn-budget': address('spawn-budget'),
    'execution-meter': address('execution-meter'),
    'tool-gateway': address('tool-gateway'),
    'agent-worker': address('agent-worker'),
  });
  return {
    ...readWireSettings(env),
    addressOf: (service) => addresses[service],
    ...(nats.servers === undefined ? {} : { nats: { ...nats, servers: nats.servers } }),
    telemetry: readTelemetrySettings(env, 'info'),
  };
}

function file(name: string, about: string) {
  return variable.string(name, { optional: true, about: `a PEM file: ${about}` });
}

function address(service: ServiceName) {
  return variable.string(variableName(service, 'ADDRESS'), {
    default: `127.0.0.1:${defaultPort(service)}`,
    pattern: /^[^\s,]+:\d{1,5}(\s*,\s*[^\s,]+:\d{1,5})*$/,
    about: 'where that service listens, as host:port, or several for its replicas',
  });
}
