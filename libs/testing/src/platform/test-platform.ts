import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import type { ServiceName } from '@writ/identity';
import {
  loadExample,
  type ModelSource,
  openModelSource,
  type Platform,
  readPlatformConfig,
  startPlatform,
} from '@writ/platform';
import { InMemorySpans, traceparentOf } from '@writ/telemetry';
import { type RequestRecord, readRequestLog } from '../simulator/index.ts';

/** What a test platform may differ in. */
export interface TestPlatformOptions {
  /** Name of the example that it runs; the refund desk when not given. */
  readonly example?: string;
  /** Data folder to go on with; a throw-away one when not given. */
  readonly dataDir?: string;
  /** Settings beside the defaults, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Takes the log's lines, which otherwise go to standard error. */
  readonly onLogLine?: (line: string) => void;
  /** The authorities that vouch for an edge with TLS, in PEM. */
  readonly ca?: string;
  /** Puts something between services, or before the model, and those who call them. */
  readonly reroute?: (service: ServiceName | 'model', address: string) => Promise<string>;
}

/** The whole platform on free ports with a simulated model, and what a test looks at. */
export interface TestPlatform {
  readonly platform: Platform;
  /** A client with the development key: caller, approver and admin of the tenant `default`. */
  readonly client: WritClient;
  readonly dataDir: string;
  /** Every span of the five services. */
  readonly spans: InMemorySpans;
  /** What the model was asked, in order, over all starts on this data folder. */
  modelRequests(): readonly RequestRecord[];
  /** Stops everything and removes a throw-away data folder. */
  close(): Promise<void>;
}

/** Starts all five services with a simulated model on free ports (SYS-5). */
export async function startTestPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'writ-test-'));
  const { WRIT_LOOPBACK = 'memory' } = process.env;
  const env = { WRIT_LOG_LEVEL: 'silent', WRIT_LOOPBACK, ...options.env };
  const example = loadExample(options.example ?? 'refund-desk');
  const spans = new InMemorySpans();
  const { reroute, onLogLine } = options;
  const source = await openModelSource(env, example, { script: example.script, dataDir });
  const model = reroute === undefined ? source : await rerouted(source, reroute);
  const platform = await startPlatform(
    readPlatformConfig(env, {
      example,
      model,
      dataDir,
      freePorts: true,
      ...(reroute === undefined ? {} : { reroute }),
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
      ...(options.ca !== undefined && { ca: options.ca }),
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

async function rerouted(
  source: ModelSource,
  reroute: NonNullable<TestPlatformOptions['reroute']>,
): Promise<ModelSource> {
  const url = new URL(source.env.WRIT_SIMULATOR_URL ?? '');
  url.host = await reroute('model', url.host);
  const there = url.href.replace(/\/$/, '');
  return {
    ...source,
    env: { ...source.env, OPENAI_BASE_URL: there, WRIT_SIMULATOR_URL: there },
  };
}
