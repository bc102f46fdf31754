import { randomBytes } from 'node:crypto';
import { readEnv, variable, type YamlInput } from '@writ/config';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';
import type { Variables } from './domain/catalog/variables.ts';
import { type BackOff, DEFAULT_BACK_OFF } from './domain/retry.ts';
import type { ModelSettings } from './providers/catalog/catalog-schema.ts';

/** Everything that can be set about an execution-meter. Times are milliseconds. */
export interface ExecutionMeterConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** The signing key lives below it. */
  readonly dataDir: string;
  /** How long a key signs before the next one does; undefined = for ever. */
  readonly keyRotationMs?: number | undefined;
  readonly store: StoreLocation;
  /** Name of this process among the replicas of the service. */
  readonly replica: string;
  /** The models and the tenants' caps. */
  readonly catalog: {
    readonly file: YamlInput;
    /** Settings by alias that replace those of the file, or add to them. */
    readonly overrides?: Readonly<Record<string, ModelSettings>>;
  };
  /** What the catalog's `${NAME}` and key variables stand for. Holds secrets: never logged. */
  readonly variables: Variables;
  /** Whether spans of model calls carry what was said, where the agent's history is kept for good. */
  readonly captureContent: boolean;
  readonly backOff: BackOff;
  /** Between two looks for reservations that are over their time. */
  readonly sweepMs: number;
  /** How long a stop waits for calls in flight before it aborts them. */
  readonly drainMs: number;
}

/** The defaults of everything that has one; tests start from here. */
export const EXECUTION_METER_DEFAULTS = {
  host: '127.0.0.1',
  replica: 'execution-meter-0',
  variables: {},
  captureContent: false,
  backOff: DEFAULT_BACK_OFF,
  sweepMs: 1_000,
  drainMs: 5_000,
} as const;

/**
 * Reads the settings of an execution-meter process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readExecutionMeterConfig(
  env: NodeJS.ProcessEnv = process.env,
): ExecutionMeterConfig {
  const { host, port, dataDir, keyRotationMs, catalogFile, capture } = readEnv(env, {
    ...listenerVariables('execution-meter'),
    catalogFile: variable.string('WRIT_MODELS_FILE', {
      default: 'examples/refund-desk/models.yaml',
      about: 'the file that lists the models',
    }),
    capture: variable.enum(
      'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
      ['NO_CONTENT', 'SPAN_ONLY'],
      { default: 'NO_CONTENT', about: 'whether spans of model calls carry what was said' },
    ),
  });
  return {
    ...EXECUTION_METER_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    store: readStoreLocation(env, 'execution-meter', dataDir),
    replica: `execution-meter-${randomBytes(4).toString('hex')}`,
    catalog: { file: catalogFile },
    variables: { ...env },
    captureContent: capture === 'SPAN_ONLY',
  };
}
