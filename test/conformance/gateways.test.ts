import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateTestCertificates } from '@writ/testing/certificates';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTables } from '../../clients/cli/src/commands/gateway/table.ts';
import type { CaseResult } from '../../clients/cli/src/commands/gateway/verification.ts';
import { startBuiltInGateway } from './built-in-gateway.ts';
import { requirePython, startPythonGateway } from './python-gateway.ts';
import { notPassed, runSuite, SUITE } from './run-suite.ts';

const TABLES = ['registry', ...loadTables(join(SUITE, 'tables')).map(({ name }) => name)];
/** The cases of the table `tls` need certificates. */
const IN_CLEARTEXT = TABLES.filter((name) => name !== 'tls');
const python = requirePython();
const dataDir = mkdtempSync(join(tmpdir(), 'writ-conformance-'));
const stops: (() => Promise<void>)[] = [];
let builtIn: readonly CaseResult[];
let builtInOverTls: readonly CaseResult[];
let pythonResults: readonly CaseResult[] = [];

function verifyBuiltIn(): Promise<readonly CaseResult[]> {
  return runSuite(async ({ addresses, toolsFile }) => {
    const gateway = await startBuiltInGateway(join(dataDir, 'built-in'), addresses, toolsFile);
    stops.push(gateway.stop);
    return gateway;
  });
}

async function verifyBuiltInOverTls(): Promise<readonly CaseResult[]> {
  const { caFile, certFile, keyFile } = await generateTestCertificates(join(dataDir, 'tls'));
  const gatewayFiles = {
    caFile,
    certFile: certFile('tool-gateway'),
    keyFile: keyFile('tool-gateway'),
  };
  const peerFiles = {
    caFile,
    certFile: join(dataDir, 'tls/{service}.crt'),
    keyFile: join(dataDir, 'tls/{service}.key'),
  };
  return await runSuite(async ({ addresses, toolsFile }) => {
    const folder = join(dataDir, 'built-in-over-tls');
    const gateway = await startBuiltInGateway(folder, addresses, toolsFile, gatewayFiles);
    stops.push(gateway.stop);
    return gateway;
  }, peerFiles);
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
  // Runs the suite on both gateways concurrently, because a run mostly waits for time limits and kills.
  const started = python === undefined ? [] : verifyPython(python);
  builtIn = await verifyBuiltIn();
  builtInOverTls = await verifyBuiltInOverTls();
  pythonResults = await started;
}, 300_000);

afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  rmSync(dataDir, { recursive: true, force: true });
});

describe('the built-in gateway (TG-7)', () => {
  it.each(TABLES)('passes every case of the table %s over mutual TLS (TG-7, SYS-6)', (table) => {
    expect(builtInOverTls.some((result) => result.table === table)).toBe(true);
    expect(notPassed(builtInOverTls, table)).toEqual([]);
  });

  it.each(IN_CLEARTEXT)('passes every case of the table %s (TG-7)', (table) => {
    expect(builtIn.some((result) => result.table === table)).toBe(true);
    expect(notPassed(builtIn, table)).toEqual([]);
  });
});

describe.skipIf(python === undefined)('the gateway in Python over SQLite (TG-7)', () => {
  it.each(IN_CLEARTEXT)('passes every case of the table %s (TG-7)', (table) => {
    expect(pythonResults.some((result) => result.table === table)).toBe(true);
    expect(notPassed(pythonResults, table)).toEqual([]);
  });
});
