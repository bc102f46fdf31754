import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Bus } from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { loadExample, openSession, type SessionOptions } from '../src/index.ts';
import { explain } from '../src/terminal/explain.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'writ-failed-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** Returns the bus of a service. On the bus of the supervisor, `unsubscribe` of a live subscription rejects. */
function brokenBus(service: ServiceName, bus: Bus): Bus {
  if (service !== 'supervisor') return bus;
  return {
    publish: (message) => bus.publish(message),
    subscribe: (options) => bus.subscribe(options),
    hasSubscribers: () => bus.hasSubscribers(),
    publishLive: (message) => bus.publishLive(message),
    subscribeLive: (options) => {
      bus.subscribeLive(options);
      return { unsubscribe: () => Promise.reject(new Error('The subscription does not end.')) };
    },
    close: () => bus.close(),
  };
}

/** The console text of a start with these settings, which must fail. */
async function failedStart(
  env: Readonly<Record<string, string>>,
  more: Partial<SessionOptions> = {},
): Promise<string> {
  const example = loadExample('refund-desk');
  const options = { example, script: undefined, dataDir: folder, freePorts: false, ...more };
  const ports = Object.fromEntries(
    ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
      (name) => [`WRIT_${name}_PORT`, '0'],
    ),
  );
  try {
    const session = await openSession({ WRIT_LOG_LEVEL: 'silent', ...ports, ...env }, options);
    await session.close();
  } catch (error) {
    return explain(error);
  }
  throw new Error('The platform started.');
}

/** A port that is in use until the end of the test. */
async function takenPort(): Promise<string> {
  const taken = createServer();
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(() => void taken.close());
  const address = taken.address();
  return String(typeof address === 'object' ? address?.port : 0);
}

describe('a failed start', () => {
  it.each(['WRIT_EDGE_PORT', 'WRIT_TOOL_GATEWAY_PORT', 'WRIT_AGENT_WORKER_PORT'])(
    'names the port that is in use and the setting %s, and can be retried immediately (SYS-3, SYS-5)',
    async (setting) => {
      const port = await takenPort();
      const message = await failedStart({ [setting]: port });
      expect(message).toContain(port);
      expect(message).toContain(setting);
      // Everything that the first attempt opened is closed: its files and ports are free.
      expect(await failedStart({ [setting]: port })).toBe(message);
    },
  );

  it('names its cause even if a service fails to stop, and stops the other services (SYS-3, SYS-5)', async () => {
    const port = await takenPort();
    const setting = { WRIT_AGENT_WORKER_PORT: port };
    const message = await failedStart(setting, { busOf: brokenBus });
    expect(message).toContain(port);
    expect(await failedStart(setting)).toBe(message);
  });

  it('leaves no export of metrics running (SYS-1, SYS-5)', async () => {
    const exported: string[] = [];
    const collector = createHttpServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      exported.push(Buffer.concat(parts).toString('latin1'));
      response.end();
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    onTestFinished(() => void collector.close());
    const { port } = collector.address() as AddressInfo;
    await failedStart({
      WRIT_EDGE_PORT: await takenPort(),
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `http://127.0.0.1:${port}/v1/metrics`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    });
    exported.splice(0);
    await pause(1_000);
    expect(exported).toEqual([]);
  });

  it('names the malformed variable (SYS-3)', async () => {
    expect(await failedStart({ WRIT_EDGE_PORT: 'eighty' })).toContain('WRIT_EDGE_PORT');
  });

  it.each([
    ['WRIT_POLICYFILE', 'WRIT_POLICY_FILE'],
    ['WRIT_TOOL_FILES', 'WRIT_TOOLS_FILE'],
    ['WRIT_APROVAL_TTL', 'WRIT_APPROVAL_TTL'],
  ])('rejects the misspelled variable %s instead of ignoring it (SYS-3)', async (name, meant) => {
    expect(await failedStart({ [name]: 'x' })).toContain(
      `${name} is not a setting; did you mean ${meant}?`,
    );
  });

  it('permits variables that files refer to (SYS-3)', async () => {
    await expect(failedStart({ WRIT_MY_PROVIDER_KEY: 'x' })).rejects.toThrow('started');
  });

  it.each([
    [
      'WRIT_AGENTS_FILE',
      'agents:\n  - name: a\n    kind: wizard\n',
      /broken\.yaml:\d+:\d+: .*kind/,
    ],
    ['WRIT_POLICY_FILE', 'rules:\n  - idd: x\n', /broken\.yaml:\d+:\d+: /],
    ['WRIT_TOOLS_FILE', 'tools: nothing\n', /broken\.yaml:\d+:\d+: .*tools/],
    ['WRIT_MODELS_FILE', 'models: {a: {timeout: soon}}\n', /broken\.yaml:\d+:\d+: /],
  ])(
    'names file, line and column when the file of %s is invalid (SYS-3)',
    async (name, text, message) => {
      const file = join(folder, 'broken.yaml');
      writeFileSync(file, text);
      expect(await failedStart({ [name]: file })).toMatch(message);
    },
  );
});

it('a platform stops all other services when one fails to stop, and reports the error (SYS-5)', async () => {
  const example = loadExample('refund-desk');
  const options = { example, script: undefined, dataDir: folder, freePorts: true };
  const env = { WRIT_LOG_LEVEL: 'silent' };
  const session = await openSession(env, { ...options, busOf: brokenBus });
  await expect(session.close()).rejects.toThrow('The subscription does not end.');
  await expect(fetch(session.platform.edgeUrl)).rejects.toThrow('fetch failed');
  // The data folder is free.
  const next = await openSession(env, options);
  await next.close();
});
