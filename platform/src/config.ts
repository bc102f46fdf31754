import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { readTelemetrySettings, type TelemetrySettings } from '@writ/service';
import type { TelemetryOptions } from '@writ/telemetry';
import type { Example } from './example.ts';
import type { ModelSource } from './model-source.ts';

/** Puts something between a service and those who call it. */
export type Reroute = (service: ServiceName, address: string) => Promise<string>;

/** Everything that an embedded platform is started with. */
export interface PlatformConfig {
  readonly dataDir: string;
  /** Another gateway's `host:port`, which the platform uses instead of starting its own (TG-7). */
  readonly toolGatewayAddress?: string;
  /** Gives the address at which the others find a service, by its own; default: that one. */
  readonly reroute?: Reroute;
  /** How the services call each other: `memory` skips HTTP/2 and nothing else, `grpc` keeps the wire (SYS-5). */
  readonly loopback: 'memory' | 'grpc';
  /** What the services' own settings are read from. */
  readonly env: Readonly<Record<string, string>>;
  /** The same for every service's telemetry. */
  readonly telemetry: TelemetrySettings &
    Pick<TelemetryOptions, 'version' | 'spanProcessors' | 'logStream'>;
}

/** What a program that starts a platform may say beside the environment. */
export interface PlatformOptions {
  readonly example: Example;
  readonly model: ModelSource;
  readonly dataDir: string;
  /** Take any free ports instead of the usual ones. */
  readonly freePorts?: boolean;
  /** What stands between the services. */
  readonly reroute?: Reroute;
  /** Further takers of spans. */
  readonly spanProcessors?: TelemetryOptions['spanProcessors'];
  /** Where log lines go; default standard error. */
  readonly logStream?: TelemetryOptions['logStream'];
}

const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

/**
 * Puts a platform's settings together: the environment, with an example's files for what it leaves out.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readPlatformConfig(
  env: NodeJS.ProcessEnv,
  {
    example,
    model,
    dataDir,
    freePorts = false,
    reroute,
    spanProcessors,
    logStream,
  }: PlatformOptions,
): PlatformConfig {
  const { toolGatewayAddress, loopback } = readEnv(env, {
    toolGatewayAddress: variable.string('WRIT_TOOL_GATEWAY_ADDRESS', {
      optional: true,
      pattern: /^\S+:\d{1,5}$/,
      about: 'another tool gateway, as host:port; the platform then starts none',
    }),
    loopback: variable.enum('WRIT_LOOPBACK', ['memory', 'grpc'], {
      default: 'memory',
      about: 'how services of one process call each other; grpc uses HTTP/2, as between processes',
    }),
  });
  return {
    dataDir,
    loopback,
    ...(toolGatewayAddress === undefined ? {} : { toolGatewayAddress }),
    ...(reroute === undefined ? {} : { reroute }),
    env: {
      WRIT_AGENTS_FILE: join(example.folder, 'agents.yaml'),
      WRIT_POLICY_FILE: join(example.folder, 'policy.yaml'),
      WRIT_TOOLS_FILE: join(example.folder, 'tools.yaml'),
      WRIT_MODELS_FILE: join(example.folder, 'models.yaml'),
      ...agentModulesOf(example),
      ...given(env),
      ...model.env,
      WRIT_DATA: dataDir,
      ...(freePorts ? FREE_PORTS : {}),
    },
    telemetry: {
      ...readTelemetrySettings(env, 'warn'),
      ...(spanProcessors === undefined ? {} : { spanProcessors }),
      ...(logStream === undefined ? {} : { logStream }),
    },
  };
}

/** Where a simulator in a process of its own listens, and what it plays. */
export interface SimulatorConfig {
  readonly host: string;
  readonly port: number;
  readonly exampleName: string;
}

/**
 * Reads the settings of a simulator process.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readSimulatorConfig(env: NodeJS.ProcessEnv): SimulatorConfig {
  return readEnv(env, {
    host: variable.string('WRIT_SIMULATOR_HOST', {
      default: '127.0.0.1',
      about: 'the address on which the model simulator answers',
    }),
    port: variable.port('WRIT_SIMULATOR_PORT', {
      default: 8090,
      about: 'the port on which the model simulator answers',
    }),
    exampleName: variable.string('WRIT_SIMULATOR_EXAMPLE', {
      default: 'refund-desk',
      about: 'the example whose scripts the model simulator plays',
    }),
  });
}

/** The data folder that the environment names, as an absolute path; undefined when it names none. */
export function dataDirOf(env: NodeJS.ProcessEnv): string | undefined {
  return env.WRIT_DATA === undefined || env.WRIT_DATA === '' ? undefined : resolve(env.WRIT_DATA);
}

/** The agents that an example has written in TypeScript, if it has some. */
function agentModulesOf({ folder }: Example): Record<string, string> {
  const module = join(folder, 'src/agents.ts');
  return existsSync(module) ? { WRIT_AGENT_MODULES: module } : {};
}

function given(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}
