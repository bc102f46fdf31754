import { join } from 'node:path';
import { createAgentProxy, readAgentProxyConfig } from '@writ/agent-proxy';
import { createAgentWorker, readAgentWorkerConfig } from '@writ/agent-worker';
import { createInProcessBus, TIMELINE_CONSUMER } from '@writ/bus';
import { rejectMisspelt } from '@writ/config';
import { createExecutionMeter, readExecutionMeterConfig } from '@writ/execution-meter';
import { DEVELOPER, devApiKey, type ServiceName, TRUST_FILE, writeTrustFile } from '@writ/identity';
import { isWritError, UnavailableError } from '@writ/kernel';
import { Loopback } from '@writ/rpc';
import {
  handlerFailures,
  lockDataFolder,
  readPeerSettings,
  type Service,
  type ServiceParts,
} from '@writ/service';
import { createSpawnBudget, readSpawnBudgetConfig } from '@writ/spawn-budget';
import {
  createSupervisor,
  functionsOf,
  readSupervisorConfig,
  type SupervisorConfig,
} from '@writ/supervisor';
import { createTelemetry, type Telemetry } from '@writ/telemetry';
import { createToolGateway, readToolGatewayConfig } from '@writ/tool-gateway';
import type { PlatformConfig } from './config.ts';

/** All services in one process (SYS-5). */
export interface Platform {
  /** Base URL of the public port. */
  readonly edgeUrl: string;
  /** Base URL of the model endpoint for external agents. */
  readonly modelBaseUrl: string;
  /** The development API key, with the roles caller, approver, admin and operator. */
  readonly apiKey: string;
  /** Internal addresses, `host:port`. */
  readonly addresses: Readonly<Record<ServiceName, string>>;
  /** Number of durable commits of all services since the start, excluding those that no request waits for. */
  commits(): number;
  /**
   * Drains and stops all services, the supervisor last; a second call has no effect. Throws the first error after
   * everything was stopped.
   */
  stop(): Promise<void>;
}

/** Order in which the services start: agent-proxy and agent-worker start after the services that their agents call. */
const START_ORDER = [
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
  'supervisor',
  'agent-proxy',
  'agent-worker',
] as const satisfies readonly ServiceName[];

/**
 * Starts the embedded platform: every service on its own port. By default, calls between the services stay in memory
 * and skip only HTTP/2; with `WRIT_LOOPBACK=grpc` they use the network. After a failed start, everything that was
 * started is stopped. `openProject` starts the platform of a project with its model and data folder.
 *
 * @throws WritError or ConfigError, one sentence that names the file, the setting, the port, or the process that
 *   uses the data folder
 * @example
 * ```ts
 * import { loadProject, openModelSource, readPlatformConfig, startPlatform } from '@writ/platform';
 *
 * const project = loadProject('.');
 * const dataDir = '.writ';
 * const model = await openModelSource(process.env, project, { script: project.script, dataDir });
 * const platform = await startPlatform(readPlatformConfig(process.env, { example: project, model, dataDir }));
 * console.log(platform.edgeUrl);
 * await platform.stop();
 * await model.close();
 * ```
 */
export async function startPlatform(config: PlatformConfig): Promise<Platform> {
  const stops: (() => Promise<void>)[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= inReverse(stops);
    return stopping;
  };
  try {
    const lock = await lockDataFolder(config.dataDir, START_ORDER);
    stops.push(() => Promise.resolve(lock.release()));
    const apiKey = await devApiKey(config.dataDir);
    const services = await createServices(config, stops);
    // Every service has read its settings.
    rejectMisspelt(config.env);
    const addresses = {
      supervisor: services.supervisor.address,
      'spawn-budget': services['spawn-budget'].address,
      'execution-meter': services['execution-meter'].address,
      'tool-gateway': services['tool-gateway'].address,
      'agent-worker': services['agent-worker'].address,
      'agent-proxy': services['agent-proxy'].address,
    };
    await writeTrustFile(join(config.dataDir, TRUST_FILE), addresses);
    for (const name of START_ORDER) await services[name].start();
    const { edgeTls } = readSupervisorConfig(config.env);
    return {
      edgeUrl: `${edgeTls === undefined ? 'http' : 'https'}://${services.supervisor.edgeAddress}`,
      modelBaseUrl: modelBaseUrlOf(services['agent-proxy'].edgeAddress, config.env),
      apiKey,
      addresses,
      commits: () => Object.values(services).reduce((sum, { commits }) => sum + commits, 0),
      stop,
    };
  } catch (error) {
    // Errors of the cleanup are ignored: the error of the failed start names the cause.
    await stop().catch(() => undefined);
    throw error;
  }
}

async function createServices(config: PlatformConfig, stops: (() => Promise<void>)[]) {
  const { env, toolGatewayAddress, documents } = config;
  const telemetryOf = (service: string, only?: readonly ['logs']): Telemetry => {
    const { otlp } = config.telemetry;
    const telemetry = createTelemetry({
      service,
      ...config.telemetry,
      ...(only !== undefined && { otlp: otlp?.logs === undefined ? {} : { logs: otlp.logs } }),
    });
    stops.push(() => telemetry.shutdown());
    return telemetry;
  };
  // The bus itself exports only logs.
  const { log } = telemetryOf('bus', ['logs']);
  const bus = createInProcessBus({
    requiredConsumers: [TIMELINE_CONSUMER],
    onError: handlerFailures(log, 'event handler failed'),
  });
  stops.push(() => bus.close());
  // One certificate cannot name all services, so internal calls are cleartext on loopback.
  const { cleartext } = readPeerSettings(env);
  const loopback = config.loopback === 'memory' ? new Loopback() : undefined;
  const addresses = new Map<ServiceName, string>();
  let endpoint = '';
  const modelBaseUrl = () => modelBaseUrlOf(endpoint, env);
  const addressOf = (service: ServiceName): string => {
    const address = addresses.get(service);
    if (address !== undefined) return address;
    throw new UnavailableError('NOT_STARTED', `${service} has not started yet.`, { service });
  };
  const add = async <S extends Service>(
    name: ServiceName,
    create: (parts: ServiceParts) => Promise<S>,
  ): Promise<S> => {
    const service = await create({
      telemetry: telemetryOf(name),
      bus: config.busOf?.(name, bus) ?? bus,
      ...(config.clockOf !== undefined && { clock: config.clockOf(name) }),
      addressOf,
      cleartext,
      loopback,
    });
    const { address } = service;
    addresses.set(name, (await config.reroute?.(name, address)) ?? address);
    stops.push(() => service.stop());
    return service;
  };
  // The last created service stops first, so that the supervisor receives the last events of the others.
  return {
    supervisor: await add('supervisor', (parts) =>
      createSupervisor(
        {
          ...readSupervisorConfig(env),
          ...(documents && { agents: documents.agents, policy: documents.policy }),
          ...agentsOf(config),
          unsavedApiKeys: config.unsavedApiKeys,
          developer: DEVELOPER.subject,
          agentProxyUrl: readSupervisorConfig(env).agentProxyUrl ?? modelBaseUrl,
        },
        parts,
      ),
    ),
    'spawn-budget': await add('spawn-budget', (parts) =>
      createSpawnBudget(readSpawnBudgetConfig(env), parts),
    ),
    'execution-meter': await add('execution-meter', (parts) =>
      createExecutionMeter(
        {
          ...readExecutionMeterConfig(env),
          ...(documents && { catalog: { file: documents.models } }),
        },
        parts,
      ),
    ),
    'tool-gateway': await add('tool-gateway', async (parts) =>
      toolGatewayAddress === undefined
        ? await createToolGateway(
            { ...readToolGatewayConfig(env), ...(documents && { tools: documents.tools }) },
            parts,
          )
        : externalService(toolGatewayAddress),
    ),
    'agent-proxy': await add('agent-proxy', async (parts) => {
      const proxy = await openAgentProxy(env, parts);
      endpoint = proxy.edgeAddress;
      return proxy;
    }),
    'agent-worker': await add('agent-worker', (parts) =>
      createAgentWorker(
        { ...readAgentWorkerConfig(env), agentsInCode: functionsOf(config.agents ?? []) },
        parts,
      ),
    ),
  };
}

/**
 * Creates agent-proxy. Without a setting, the internal listener uses a free port, and the listener for external agents
 * uses its default port or, if that is in use, a free one; the platform reports both addresses.
 */
async function openAgentProxy(env: PlatformConfig['env'], parts: ServiceParts) {
  const config = readAgentProxyConfig({ WRIT_AGENT_PROXY_PORT: '0', ...env });
  try {
    return await createAgentProxy(config, parts);
  } catch (error) {
    const isTaken = isWritError(error) && error.reason === 'PORT_IN_USE';
    if (!isTaken || env.WRIT_AGENT_PROXY_ENDPOINT_PORT !== undefined) throw error;
    const endpoint = { ...config.endpoint, port: 0 };
    return await createAgentProxy({ ...config, endpoint }, parts);
  }
}

function modelBaseUrlOf(address: string, env: PlatformConfig['env']): string {
  const { endpointTls } = readAgentProxyConfig(env);
  return `${endpointTls === undefined ? 'http' : 'https'}://${address}/v1`;
}

/** Returns the settings for agents defined in code. With such agents, the default agents file is not used. */
function agentsOf({ agents, env }: PlatformConfig): Partial<SupervisorConfig> {
  if (agents === undefined) return {};
  return {
    agentsInCode: agents,
    ...(env.WRIT_AGENTS_FILE === undefined && { agents: undefined }),
  };
}

/** A service that runs outside this process. */
function externalService(address: string): Service {
  return { address, commits: 0, start: () => Promise.resolve(), stop: () => Promise.resolve() };
}

/**
 * Runs every function in reverse order, even after a function has failed.
 * @throws the first error
 */
async function inReverse(stops: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const stop of stops.toReversed()) {
    try {
      await stop();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
