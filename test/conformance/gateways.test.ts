import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateTestCertificates } from '@writ/testing/certificates';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTables } from '../../clients/cli/src/commands/gateway/table.ts';
import type { CaseResult } from '../../clients/cli/src/commands/gateway/verification.ts';
import { startOwnGateway } from './own-gateway.ts';
import { requirePython, startPythonGateway } from './python-gateway.ts';
import { notPassed, runSuite, SUITE } from './run-suite.ts';

const TABLES = ['registry', ...loadTables(join(SUITE, 'tables')).map(({ name }) => name)];
/** Cases that are about certificates are skipped without. */
const IN_CLEARTEXT = TABLES.filter((name) => name !== 'tls');
const python = requirePython();
const dataDir = mkdtempSync(join(tmpdir(), 'writ-conformance-'));
const stops: (() => Promise<void>)[] = [];
let ofOurs: readonly CaseResult[];
let ofOursOverTls: readonly CaseResult[];
let ofPython: readonly CaseResult[] = [];

function verifyOurs(): Promise<readonly CaseResult[]> {
  return runSuite(async ({ addresses, toolsFile }) => {
    const gateway = await startOwnGateway(join(dataDir, 'ours'), addresses, toolsFile);
    stops.push(gateway.stop);
    return gateway;
  });
}

async function verifyOursOverTls(): Promise<readonly CaseResult[]> {
  const { caFile, certFile, keyFile } = await generateTestCertificates(join(dataDir, 'tls'));
  const ofGateway = {
    caFile,
    certFile: certFile('tool-gateway'),
    keyFile: keyFile('tool-gateway'),
  };
  const ofPlayed = {
    caFile,
    certFile: join(dataDir, 'tls/{service}.crt'),
    keyFile: join(dataDir, 'tls/{service}.key'),
  };
  return await runSuite(async ({ addresses, toolsFile }) => {
    const folder = join(dataDir, 'ours-over-tls');
    const gateway = await startOwnGateway(folder, addresses, toolsFile, ofGateway);
    stops.push(gateway.stop);
    return gateway;
  }, ofPlayed);
}

function verifyPython(interpreter: string): Promise<readonly CaseResult[]> {
  return runSuite(async ({ addresses, toolsFile }) => {
    const gateway = await startPythonGateway(interpreter, {
      WRIT_DATA: join(dataDir, 'python'),
      WRIT_TOOLS_FILE: toolsFile,
      WRIT_SUPERVISOR_ADDRESS: addresses.supervisor,
      WRIT_AGENT_WORKER_ADDRESS: addresses.worker,
      WRIT_RECEIPT_DELAY_MS: '0',
      CONFORMANCE_TOOLS: addresses.tools,
    });
    stops.push(gateway.stop);
    return gateway;
  });
}

beforeAll(async () => {
  // All wait a good deal, for time limits and kills.
  const started = python === undefined ? [] : verifyPython(python);
  ofOurs = await verifyOurs();
  ofOursOverTls = await verifyOursOverTls();
  ofPython = await started;
}, 300_000);

afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  rmSync(dataDir, { recursive: true, force: true });
});

describe('our own gateway may be replaced by its like (TG-7)', () => {
  it.each(TABLES)(
    'since it passes every case of the table %s over mutual TLS (TG-7, SYS-6)',
    (table) => {
      expect(ofOursOverTls.some((result) => result.table === table)).toBe(true);
      expect(notPassed(ofOursOverTls, table)).toEqual([]);
    },
  );

  it.each(IN_CLEARTEXT)('since it passes every case of the table %s (TG-7)', (table) => {
    expect(ofOurs.some((result) => result.table === table)).toBe(true);
    expect(notPassed(ofOurs, table)).toEqual([]);
  });
});

describe.skipIf(python === undefined)('a gateway of another make may replace ours (TG-7)', () => {
  it.each(IN_CLEARTEXT)(
    'since it passes every case of the table %s, in Python over SQLite (TG-7)',
    (table) => {
      expect(ofPython.some((result) => result.table === table)).toBe(true);
      expect(notPassed(ofPython, table)).toEqual([]);
    },
  );
});
