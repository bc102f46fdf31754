import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Bus } from '@writ/bus';
import { type DocumentText, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { readTelemetrySettings, type TelemetrySettings } from '@writ/service';
import type { AgentManifest } from '@writ/supervisor';
import type { TelemetryOptions } from '@writ/telemetry';
import type { Example } from './example.ts';
import type { ModelSource } from './model-source.ts';

/** Inserts a proxy between a service and its callers; returns the address of the proxy. */
export type Reroute = (service: ServiceName, address: string) => Promise<string>;

/** Returns the bus that a service uses, given the bus of the platform. */
export type BusOf = (service: ServiceName, bus: Bus) => Bus;

/** The clock of a service. */
export type ClockOf = (service: ServiceName) => Clock;

/** The texts of the settings files. */
export type SettingsDocuments = Readonly<
  Record<'agents' | 'policy' | 'tools' | 'models', DocumentText>
>;

/** Settings of an embedded platform. */
export interface PlatformConfig {
  readonly dataDir: string;
  /** `host:port` of an external tool gateway, used instead of starting one (TG-7). */
  readonly toolGatewayAddress?: string;
  /** Maps the address of a service to the one that its callers use; default: unchanged. */
  readonly reroute?: Reroute;
  /** Wraps the bus of a service; default: unchanged. */
  readonly busOf?: BusOf;
  /** The clock of a service; default: the system clock. */
  readonly clockOf?: ClockOf;
  /** How the services call each other: `memory` skips HTTP/2 and nothing else, `grpc` uses the network (SYS-5). */
  readonly loopback: 'memory' | 'grpc';
  /** API keys that exist only in memory until the process exits, with the person of each key. */
  readonly unsavedApiKeys?: ReadonlyMap<string, Person>;
  /** Agents created by createAgent. Without WRIT_AGENTS_FILE in `env`, the platform has no other agents. */
  readonly agents?: readonly AgentManifest[];
  /** Texts in place of the files that `env` names; they are not reloaded. */
  readonly documents?: SettingsDocuments;
  /** Environment of the services. */
  readonly env: Readonly<Record<string, string>>;
  /** Telemetry settings, the same for every service. */
  readonly telemetry: TelemetrySettings &
    Pick<TelemetryOptions, 'version' | 'spanProcessors' | 'logStream'>;
}

/** Options of a program that starts a platform, in addition to the environment. */
export interface PlatformOptions {
  /** The folder with the configuration files. */
  readonly example: Pick<Example, 'folder'>;
  readonly model: ModelSource;
  readonly dataDir: string;
  /**
   * Agents created by createAgent, in place of those of the example. Set WRIT_AGENTS_FILE in the environment to add the
   * agents of a file.
   */
  readonly agents?: readonly AgentManifest[];
  /** Use free ports for all listeners, even if the environment sets a port. */
  readonly freePorts?: boolean;
  /** API keys that exist only in memory until the process exits, with the person of each key. */
  readonly unsavedApiKeys?: ReadonlyMap<string, Person>;
  /** Proxies between the services. */
  readonly reroute?: Reroute;
  /** Wraps the bus of a service. */
  readonly busOf?: BusOf;
  /** The clock of a service; default: the system clock. */
  readonly clockOf?: ClockOf;
  /** Additional span processors. */
  readonly spanProcessors?: TelemetryOptions['spanProcessors'];
  /** Destination of the log; default standard error. */
  readonly logStream?: TelemetryOptions['logStream'];
}

/** Files that may define the agents of a folder in code; the first existing one is used. */
export const AGENT_MODULES = ['agents.ts', 'agents.js', 'src/agents.ts', 'src/agents.js'];

const FREE_PORTS = Object.fromEntries(
  [
    ...['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'],
    ...['AGENT_PROXY', 'AGENT_PROXY_ENDPOINT'],
  ].map((name) => [`WRIT_${name}_PORT`, '0']),
);

/**
 * Reads the settings of a platform from the environment, with the files of an example as defaults.
 *
 * @throws ConfigError naming every variable that is malformed
 */
export function readPlatformConfig(
  env: NodeJS.ProcessEnv,
  {
    example,
    model,
    dataDir,
    agents,
    freePorts = false,
    unsavedApiKeys,
    reroute,
    busOf,
    clockOf,
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
      about: 'transport between services of one process; grpc uses HTTP/2, as between processes',
    }),
  });
  return {
    dataDir,
    loopback,
    ...(toolGatewayAddress === undefined ? {} : { toolGatewayAddress }),
    ...(reroute === undefined ? {} : { reroute }),
    ...(unsavedApiKeys === undefined ? {} : { unsavedApiKeys }),
    ...(agents === undefined ? {} : { agents }),
    ...(busOf === undefined ? {} : { busOf }),
    ...(clockOf === undefined ? {} : { clockOf }),
    env: {
      ...(agents === undefined && { WRIT_AGENTS_FILE: join(example.folder, 'agents.yaml') }),
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

/** Settings of a simulator in a separate process. */
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
      about: 'the address on which the model simulator listens',
    }),
    port: variable.port('WRIT_SIMULATOR_PORT', {
      default: 8090,
      about: 'the port on which the model simulator listens',
    }),
    exampleName: variable.string('WRIT_SIMULATOR_EXAMPLE', {
      default: 'refund-desk',
      about: 'the example whose scripts the model simulator uses',
    }),
  });
}

/** The data folder of the environment as an absolute path; undefined if not set. */
export function dataDirOf(env: NodeJS.ProcessEnv): string | undefined {
  return env.WRIT_DATA === undefined || env.WRIT_DATA === '' ? undefined : resolve(env.WRIT_DATA);
}

/** The module with the TypeScript agents of an example or a project, if it has one. */
function agentModulesOf({ folder }: Pick<Example, 'folder'>): Record<string, string> {
  const module = AGENT_MODULES.map((file) => join(folder, file)).find((file) => existsSync(file));
  return module === undefined ? {} : { WRIT_AGENT_MODULES: module };
}

function given(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}
