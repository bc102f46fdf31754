import { type Environment, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { LOG_LEVELS, type TelemetryOptions } from '@writ/telemetry';
import { defaultPort, variableName } from './names.ts';

/** What a service needs besides its own settings when it is a process of its own. */
export interface ProcessSettings {
  readonly addressOf: (service: ServiceName) => string;
  readonly telemetry: Pick<TelemetryOptions, 'logLevel' | 'otlpEndpoint'>;
}

/**
 * Reads where the other services are, and what is logged and traced.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readProcessSettings(env: Environment = process.env): ProcessSettings {
  const { logLevel, otlpEndpoint, ...addresses } = readEnv(env, {
    logLevel: variable.enum('WRIT_LOG_LEVEL', LOG_LEVELS, {
      default: 'info',
      about: 'how much is logged',
    }),
    otlpEndpoint: variable.url('OTEL_EXPORTER_OTLP_ENDPOINT', {
      optional: true,
      about: 'the collector that traces go to',
    }),
    supervisor: address('supervisor'),
    'spawn-budget': address('spawn-budget'),
    'execution-meter': address('execution-meter'),
    'tool-gateway': address('tool-gateway'),
    'agent-worker': address('agent-worker'),
  });
  return {
    addressOf: (service) => addresses[service],
    telemetry: { logLevel, ...(otlpEndpoint === undefined ? {} : { otlpEndpoint }) },
  };
}

function address(service: ServiceName) {
  return variable.string(variableName(service, 'ADDRESS'), {
    default: `127.0.0.1:${defaultPort(service)}`,
    pattern: /^\S+:\d{1,5}$/,
    about: 'where that service listens, as host:port',
  });
}
