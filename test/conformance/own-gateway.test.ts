import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { createToolGateway, TOOL_GATEWAY_DEFAULTS, type ToolGateway } from '@writ/tool-gateway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTables } from '../../clients/cli/src/commands/gateway/table.ts';
import type { CaseResult } from '../../clients/cli/src/commands/gateway/verification.ts';
import { notPassed, runSuite, type StartGateway, SUITE } from './run-suite.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'writ-conformance-'));
const telemetry = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
let gateway: ToolGateway;
let results: readonly CaseResult[];

const startOurs: StartGateway = async ({ addresses, toolsFile }) => {
  const start = async (port: number): Promise<void> => {
    gateway = await createToolGateway(
      {
        ...TOOL_GATEWAY_DEFAULTS,
        port,
        dataDir,
        store: { dialect: 'sqlite', file: join(dataDir, 'tool-gateway.db') },
        tools: toolsFile,
        variables: { CONFORMANCE_TOOLS: addresses.tools },
        receiptDelayMs: 0,
        receiptPollMs: 20,
        drainMs: 0,
        flushMs: 0,
      },
      {
        telemetry,
        bus: createInProcessBus({ onError: () => undefined }),
        addressOf: (service) =>
          service === 'supervisor' ? addresses.supervisor : addresses.worker,
      },
    );
    await gateway.start();
  };
  await start(0);
  const { address } = gateway;
  return {
    address,
    // Nothing of it can write any more, as after a kill.
    restart: async () => {
      await gateway.store.close();
      await gateway.stop();
      await start(Number(address.split(':')[1]));
    },
  };
};

beforeAll(async () => {
  results = await runSuite(startOurs);
});

afterAll(async () => {
  await gateway.stop();
  await telemetry.shutdown();
  rmSync(dataDir, { recursive: true, force: true });
});

describe('our own gateway may be replaced by its like (TG-7)', () => {
  it.each(['registry', ...loadTables(join(SUITE, 'tables')).map(({ name }) => name)])(
    'since it passes every case of the table %s (TG-7)',
    (table) => {
      expect(results.some((result) => result.table === table)).toBe(true);
      expect(notPassed(results, table)).toEqual([]);
    },
  );
});
