import { randomBytes } from 'node:crypto';
import { readEnv, variable } from '@writ/config';
import type { BackoffOptions } from '@writ/kernel';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';
import type { CatalogSource } from './providers/catalog/catalog-file.ts';

/** Back-off between attempts of a model call (EM-8). */
export interface RetryBackoff extends BackoffOptions {
  /** Upper limit of a Retry-After of the provider, in milliseconds. */
  readonly maxRetryAfterMs: number;
}

/** Configuration of an execution-meter. Times are in milliseconds. */
export interface ExecutionMeterConfig extends CatalogSource {
  /** Listen address of the gRPC server; port 0 selects a free port. */
  readonly host: string;
  readonly port: number;
  /** Directory that contains the signing keys. */
  readonly dataDir: string;
  /** Rotation interval of the signing key; undefined = no rotation. */
  readonly keyRotationMs?: number | undefined;
  /** Tolerated clock skew between this service and other services. */
  readonly clockLeewayMs?: number | undefined;
  readonly store: StoreLocation;
  /** Name of this process among the replicas of the service. */
  readonly replica: string;
  /** Whether spans of model calls contain messages, for agents with permanent history retention. */
  readonly captureContent: boolean;
  /** Back-off between attempts of a model call. */
  readonly backoff: RetryBackoff;
  /** Percentages of a cap at which a settlement emits BUDGET_THRESHOLD, in ascending order. */
  readonly thresholds: readonly number[];
  /**
   * Number of slices of each shared level: session, day and month (ADR 32). Default: 64 on PostgreSQL, and one on
   * SQLite, which has one writer.
   */
  readonly slices?: number | undefined;
  /** Interval of the sweeps: expired reservations, calls of dead replicas, changes of the models file. */
  readonly sweepMs: number;
  /** Time that a shutdown waits for calls in flight before it aborts them. */
  readonly drainMs: number;
}

/** Default configuration, also the base of test configurations. */
export const EXECUTION_METER_DEFAULTS = {
  host: '127.0.0.1',
  replica: 'execution-meter-0',
  variables: {},
  captureContent: false,
  backoff: { baseMs: 500, maxMs: 8_000, maxRetryAfterMs: 30_000 },
  thresholds: [50, 80, 100],
  sweepMs: 1_000,
  drainMs: 5_000,
} as const;

/**
 * Reads the settings of an execution-meter process.
 * @throws ConfigError naming the variables that are malformed
 */
export function readExecutionMeterConfig(
  env: NodeJS.ProcessEnv = process.env,
): ExecutionMeterConfig {
  const values = readEnv(env, {
    ...listenerVariables('execution-meter'),
    catalogFile: variable.string('WRIT_MODELS_FILE', {
      default: 'examples/refund-desk/models.yaml',
      about: 'the file that lists the models',
    }),
    thresholds: variable.list('WRIT_BUDGET_THRESHOLDS', {
      default: EXECUTION_METER_DEFAULTS.thresholds.map(String),
      item: /^([1-9]\d?|100)$/,
      example: '50,80,100',
      about: 'the percentages of a cap at which the event BUDGET_THRESHOLD is published',
    }),
    capture: variable.enum(
      'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
      ['NO_CONTENT', 'SPAN_ONLY'],
      { default: 'NO_CONTENT', about: 'whether spans of model calls contain messages' },
    ),
  });
  const { host, port, dataDir, keyRotationMs, clockLeewayMs, catalogFile, capture } = values;
  return {
    ...EXECUTION_METER_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    clockLeewayMs,
    store: readStoreLocation(env, 'execution-meter', dataDir),
    replica: `execution-meter-${randomBytes(4).toString('hex')}`,
    catalog: { file: catalogFile },
    variables: { ...env },
    captureContent: capture === 'SPAN_ONLY',
    thresholds: values.thresholds.map(Number).sort((a, b) => a - b),
  };
}
