import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTables } from '../../clients/cli/src/commands/gateway/table.ts';
import type { CaseResult } from '../../clients/cli/src/commands/gateway/verification.ts';
import { type PythonGateway, requirePython, startPythonGateway } from './python-gateway.ts';
import { notPassed, runSuite, SUITE } from './run-suite.ts';

const python = requirePython();

describe.skipIf(python === undefined)('a gateway of another make may replace ours (TG-7)', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-python-'));
  let gateway: PythonGateway | undefined;
  let results: readonly CaseResult[];

  beforeAll(async () => {
    results = await runSuite(async ({ addresses, toolsFile }) => {
      gateway = await startPythonGateway(python ?? '', {
        WRIT_DATA: dataDir,
        WRIT_TOOLS_FILE: toolsFile,
        WRIT_SUPERVISOR_ADDRESS: addresses.supervisor,
        WRIT_AGENT_WORKER_ADDRESS: addresses.worker,
        WRIT_RECEIPT_DELAY_MS: '0',
        CONFORMANCE_TOOLS: addresses.tools,
      });
      return gateway;
    });
  });

  afterAll(async () => {
    await gateway?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it.each(['registry', ...loadTables(join(SUITE, 'tables')).map(({ name }) => name)])(
    'since it passes every case of the table %s, in Python over SQLite (TG-7)',
    (table) => {
      expect(results.some((result) => result.table === table)).toBe(true);
      expect(notPassed(results, table)).toEqual([]);
    },
  );
});
