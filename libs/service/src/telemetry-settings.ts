import { type Environment, readEnv, variable } from '@writ/config';
import {
  LOG_LEVELS,
  type LogLevel,
  OTLP_PROTOCOLS,
  type OtlpProtocol,
  type OtlpTarget,
  type OtlpTargets,
  type TelemetryOptions,
} from '@writ/telemetry';

/** What the environment says of logs, traces and metrics. */
export type TelemetrySettings = Pick<
  TelemetryOptions,
  'logLevel' | 'otlp' | 'resource' | 'sampleRatio'
>;

type Signal = 'traces' | 'metrics' | 'logs';

const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];

/**
 * Reads what is logged, and where traces, metrics and logs go, from OpenTelemetry's own variables
 * (SYS-1). Its packages read the rest themselves: headers, certificates, compression.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readTelemetrySettings(env: Environment, defaultLevel: LogLevel): TelemetrySettings {
  const { logLevel, disabled, resource, sampleRatio, metricInterval, ...general } = readEnv(env, {
    logLevel: variable.enum('WRIT_LOG_LEVEL', LOG_LEVELS, {
      default: defaultLevel,
      about: 'how much is logged',
    }),
    disabled: variable.boolean('OTEL_SDK_DISABLED', {
      default: false,
      about: 'whether nothing is exported, whatever else is set',
    }),
    resource: variable.string('OTEL_RESOURCE_ATTRIBUTES', {
      optional: true,
      about: 'what else is said of the service, as key=value,key=value',
    }),
    // The only sampler: what a share is taken of is always the traces that begin here.
    sampler: variable.enum('OTEL_TRACES_SAMPLER', ['parentbased_traceidratio'], {
      optional: true,
      about: 'how traces are sampled',
    }),
    sampleRatio: variable.number('OTEL_TRACES_SAMPLER_ARG', {
      default: 1,
      min: 0,
      max: 1,
      about: 'the share of traces that is sampled by chance',
    }),
    metricInterval: variable.integer('OTEL_METRIC_EXPORT_INTERVAL', {
      default: 60_000,
      min: 100,
      about: 'milliseconds between two exports of metrics',
    }),
    endpoint: endpoint('OTEL_EXPORTER_OTLP_ENDPOINT', 'traces, metrics and logs'),
    protocol: variable.enum('OTEL_EXPORTER_OTLP_PROTOCOL', OTLP_PROTOCOLS, {
      default: 'grpc',
      about: 'how they travel',
    }),
  });
  const targets = SIGNALS.flatMap((signal) => {
    const target = disabled ? undefined : targetOf(signal, env, general);
    return target === undefined ? [] : [[signal, target] as const];
  });
  const otlp: OtlpTargets = Object.fromEntries(targets);
  return {
    logLevel,
    sampleRatio,
    ...(resource !== undefined && { resource }),
    ...(targets.length > 0 && { otlp: { ...otlp, metricIntervalMs: metricInterval } }),
  };
}

function targetOf(
  signal: Signal,
  env: Environment,
  general: { readonly endpoint: string | undefined; readonly protocol: OtlpProtocol },
): OtlpTarget | undefined {
  const name = signal.toUpperCase();
  const own = readEnv(env, {
    // Its own name in the standard is OTEL_LOGS_EXPORTER and so on.
    exporter: variable.enum(`OTEL_${name}_EXPORTER`, ['otlp', 'none'], {
      default: 'otlp',
      about: `whether ${signal} are exported`,
    }),
    endpoint: endpoint(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`, signal),
    protocol: variable.enum(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`, OTLP_PROTOCOLS, {
      optional: true,
      about: `how ${signal} travel`,
    }),
  });
  const protocol = own.protocol ?? general.protocol;
  if (own.exporter === 'none') return undefined;
  if (own.endpoint !== undefined) return { endpoint: own.endpoint, protocol };
  if (general.endpoint === undefined) return undefined;
  // As the standard has it: a path below the endpoint for all, but not below a signal's own.
  const below = `${general.endpoint.replace(/\/$/, '')}/v1/${signal}`;
  return { endpoint: protocol === 'grpc' ? general.endpoint : below, protocol };
}

function endpoint(name: string, what: string) {
  return variable.url(name, { optional: true, about: `the collector that ${what} go to` });
}
