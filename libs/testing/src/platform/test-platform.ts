import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bus } from '@writ/bus';
import { createWritClient, type WritClient } from '@writ/client';
import type { ServiceName } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import {
  type AgentManifest,
  loadExample,
  type ModelSource,
  openModelSource,
  type Platform,
  readPlatformConfig,
  startPlatform,
} from '@writ/platform';
import { type RequestRecord, readRequestLog } from '@writ/simulator';
import { InMemorySpans, traceparentOf } from '@writ/telemetry';
import { storeVariables, testStore } from '../postgres/index.ts';

/** Settings that name a file, and the file's name in the data folder. */
const FILES = {
  WRIT_AGENTS_FILE: 'agents.yaml',
  WRIT_POLICY_FILE: 'policy.yaml',
  WRIT_MODELS_FILE: 'models.yaml',
  WRIT_TOOLS_FILE: 'tools.yaml',
  WRIT_AGENT_MODULES: 'agents.ts',
} as const;

/** Options of {@link startTestPlatform}. */
export interface TestPlatformOptions {
  /** Name of the example to run; default `refund-desk`. */
  readonly example?: string;
  /** Agents created by createAgent, in place of those of the example; see PlatformOptions. */
  readonly agents?: readonly AgentManifest[];
  /** Existing data folder to reuse; default: a temporary one. */
  readonly dataDir?: string;
  /** Contents of settings files, by the variable that names the file; written to the data folder. */
  readonly files?: Readonly<Partial<Record<keyof typeof FILES, string>>>;
  /** Environment variables on top of the defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** Receives log lines; default: standard error. */
  readonly onLogLine?: (line: string) => void;
  /** CA certificates in PEM that verify an edge with TLS. */
  readonly ca?: string;
  /** Returns the address that callers of a service or of the model use instead, for example a proxy's. */
  readonly reroute?: (service: ServiceName | 'model', address: string) => Promise<string>;
  /** Returns the bus that a service uses instead, for example one that delivers late. */
  readonly busOf?: (service: ServiceName, bus: Bus) => Bus;
  /** Returns the clock of a service; default: the system clock. */
  readonly clockOf?: (service: ServiceName) => Clock;
}

/** A platform on free ports with a simulated model, and its clients, spans and model requests for assertions. */
export interface TestPlatform {
  readonly platform: Platform;
  /** A client with the development key: caller, approver, admin and operator, in the tenant `default`. */
  readonly client: WritClient;
  readonly dataDir: string;
  /** The spans of all services. */
  readonly spans: InMemorySpans;
  /** Requests to the model in order, across all starts on this data folder. */
  modelRequests(): readonly RequestRecord[];
  /** Stops the platform and removes a temporary data folder. */
  close(): Promise<void>;
}

/**
 * Starts all services with a simulated model on free ports (SYS-5). With WRIT_TEST_STORE=postgres, agent-proxy uses
 * PostgreSQL, because most of its tests use this platform.
 */
export async function startTestPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'writ-test-'));
  const { WRIT_LOOPBACK = 'memory' } = process.env;
  const files = writeFiles(dataDir, options.files);
  const store = testStore({ dialect: 'sqlite', file: join(dataDir, 'agent-proxy.db') });
  const env = {
    WRIT_LOG_LEVEL: 'silent',
    WRIT_LOOPBACK,
    ...storeVariables('agent-proxy', store),
    ...files,
    ...options.env,
  };
  const example = loadExample(options.example ?? 'refund-desk');
  const spans = new InMemorySpans();
  const { agents, reroute, busOf, clockOf, onLogLine } = options;
  const source = await openModelSource(env, example, { script: example.script, dataDir });
  const model = reroute === undefined ? source : await rerouted(source, reroute);
  const platform = await startPlatform(
    readPlatformConfig(env, {
      example,
      model,
      dataDir,
      freePorts: true,
      ...(agents === undefined ? {} : { agents }),
      ...(reroute === undefined ? {} : { reroute }),
      ...(busOf === undefined ? {} : { busOf }),
      ...(clockOf === undefined ? {} : { clockOf }),
      spanProcessors: [spans],
      ...(onLogLine && { logStream: { write: onLogLine } }),
    }),
  );
  return {
    platform,
    client: createWritClient({
      baseUrl: platform.edgeUrl,
      apiKey: platform.apiKey,
      traceparent: traceparentOf,
      ...omitUndefined({ ca: options.ca }),
    }),
    dataDir,
    spans,
    modelRequests: () => readRequestLog(join(dataDir, 'simulator-requests.jsonl')),
    close: async () => {
      await platform.stop();
      await model.close();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Writes the files and returns the settings that name them. */
function writeFiles(
  dataDir: string,
  contents: TestPlatformOptions['files'] = {},
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(contents).map(([variable, content]) => {
      const file = join(dataDir, FILES[variable as keyof typeof FILES]);
      writeFileSync(file, content);
      return [variable, file];
    }),
  );
}

async function rerouted(
  source: ModelSource,
  reroute: NonNullable<TestPlatformOptions['reroute']>,
): Promise<ModelSource> {
  const url = new URL(source.env.WRIT_SIMULATOR_URL ?? '');
  url.host = await reroute('model', url.host);
  const baseUrl = url.href.replace(/\/$/, '');
  return {
    ...source,
    env: { ...source.env, OPENAI_BASE_URL: baseUrl, WRIT_SIMULATOR_URL: baseUrl },
  };
}
