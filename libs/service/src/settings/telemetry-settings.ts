import { type Environment, MAX_INTERVAL_MS, readEnv, variable } from '@writ/config';
import { omitUndefined } from '@writ/kernel';
import {
  LOG_LEVELS,
  type LogLevel,
  OTLP_PROTOCOLS,
  type OtlpProtocol,
  type OtlpTarget,
  type OtlpTargets,
  type TelemetryOptions,
} from '@writ/telemetry';

/** The settings of logs, traces and metrics. */
export type TelemetrySettings = Pick<
  TelemetryOptions,
  'logLevel' | 'otlp' | 'resource' | 'sampleRatio' | 'internalSpans'
>;

type Signal = 'traces' | 'metrics' | 'logs';

const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];

/**
 * Reads the log level, and the export of traces, metrics and logs from the variables of OpenTelemetry (SYS-1).
 * The OpenTelemetry packages read headers, certificates and compression from the environment themselves.
 *
 * @throws ConfigError naming the malformed variables of the first group that contains any: the common variables, or the
 *   variables of one signal
 */
export function readTelemetrySettings(env: Environment, defaultLevel: LogLevel): TelemetrySettings {
  const { logLevel, disabled, resource, sampleRatio, internalSpans, metricInterval, ...general } =
    readEnv(env, {
      logLevel: variable.enum('WRIT_LOG_LEVEL', LOG_LEVELS, {
        default: defaultLevel,
        about: 'the log level',
      }),
      disabled: variable.boolean('OTEL_SDK_DISABLED', {
        default: false,
        about: 'whether all exports are disabled',
      }),
      resource: variable.string('OTEL_RESOURCE_ATTRIBUTES', {
        optional: true,
        about: 'additional resource attributes, as key=value,key=value',
      }),
      // The only supported sampler. The ratio applies to traces that start in this process.
      sampler: variable.enum('OTEL_TRACES_SAMPLER', ['parentbased_traceidratio'], {
        optional: true,
        about: 'the sampler of traces',
      }),
      sampleRatio: variable.number('OTEL_TRACES_SAMPLER_ARG', {
        default: 1,
        min: 0,
        max: 1,
        about: 'the share of traces that is sampled',
      }),
      internalSpans: variable.boolean('WRIT_TRACE_INTERNALS', {
        default: false,
        about: 'whether traces contain commits, events on the bus and key requests',
      }),
      metricInterval: variable.integer('OTEL_METRIC_EXPORT_INTERVAL', {
        default: 60_000,
        min: 100,
        max: MAX_INTERVAL_MS,
        about: 'the interval between two exports of metrics in milliseconds',
      }),
      endpoint: endpoint('OTEL_EXPORTER_OTLP_ENDPOINT', 'traces, metrics and logs'),
      protocol: variable.enum('OTEL_EXPORTER_OTLP_PROTOCOL', OTLP_PROTOCOLS, {
        default: 'grpc',
        about: 'the OTLP protocol',
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
    ...(internalSpans && { internalSpans }),
    ...omitUndefined({ resource }),
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
    // The OpenTelemetry specification defines this name, such as OTEL_LOGS_EXPORTER.
    exporter: variable.enum(`OTEL_${name}_EXPORTER`, ['otlp', 'none'], {
      default: 'otlp',
      about: `whether ${signal} are exported`,
    }),
    endpoint: endpoint(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`, signal),
    protocol: variable.enum(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`, OTLP_PROTOCOLS, {
      optional: true,
      about: `the OTLP protocol of ${signal}`,
    }),
  });
  const protocol = own.protocol ?? general.protocol;
  if (own.exporter === 'none') return undefined;
  if (own.endpoint !== undefined) return { endpoint: own.endpoint, protocol };
  if (general.endpoint === undefined) return undefined;
  // The OTLP/HTTP specification requires that a path is appended to the common endpoint, but not to a signal-specific
  // endpoint.
  const below = `${general.endpoint.replace(/\/$/, '')}/v1/${signal}`;
  return { endpoint: protocol === 'grpc' ? general.endpoint : below, protocol };
}

function endpoint(name: string, what: string) {
  return variable.url(name, { optional: true, about: `the collector of ${what}` });
}
