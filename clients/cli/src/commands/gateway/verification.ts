import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type JsonObject, toJson } from '@bufbuild/protobuf';
import { ToolDefinitionSchema } from '@writ/contracts/writ/tool/v1/tool_pb';
import { InvalidRequestError, newId, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { CaseRun } from './case-run.ts';
import { type CertificateFiles, openCertificates } from './certificates.ts';
import { connectGateway, type GatewayUnderTest } from './gateway-under-test.ts';
import { isServing } from './health.ts';
import { mismatch } from './mismatch.ts';
import { AS_CONTRACT } from './receipt-rules.ts';
import { RestartBarrier } from './restart-barrier.ts';
import { callerHeaders } from './sent-call.ts';
import { listedAs, loadSuiteTools, type ToolDefinitionRow } from './suite-tools.ts';
import { type Case, loadTables, type Table } from './table.ts';
import { openTestPeers, type PeerAddresses, type TestPeers } from './test-peers.ts';

/** Result of one case. */
export interface CaseResult {
  readonly table: string;
  readonly name: string;
  readonly spec: readonly string[];
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** The problem, or why the case was skipped. */
  readonly detail: string;
}

/** Options of {@link Verification.run}. */
export interface RunOptions {
  /** `host:port`. */
  readonly address: string;
  /** Kills the gateway and restarts it with the same address and state; without it, crash cases are skipped. */
  readonly restart?: (() => Promise<void>) | undefined;
  /** Time limit for the gateway to become ready, in milliseconds. */
  readonly waitMs: number;
  /** Runs only tables whose name contains this text. */
  readonly only?: string | undefined;
  /** Receives the result of every case. */
  readonly onResult: (result: CaseResult) => void;
}

/** A verification whose peers are listening. */
export interface Verification {
  /** Addresses for the configuration of the gateway. */
  readonly addresses: PeerAddresses;
  /** tools.yaml for the gateway. */
  readonly toolsFile: string;
  /** SPIFFE trust domain; undefined in cleartext. */
  readonly trustDomain: string | undefined;
  /**
   * Runs every table against a gateway (TG-7).
   * @throws UnavailableError NOT_SERVING; InvalidRequestError UNKNOWN_TABLE
   */
  run(options: RunOptions): Promise<void>;
  close(): Promise<void>;
}

/** Interval of health checks while the gateway starts. */
const POLL_INTERVAL_MS = 50;

/**
 * Opens a verification with the tables of `folder` and starts its peers.
 * @param certificateFiles certificates for mutual TLS; undefined selects cleartext
 */
export async function openVerification(
  folder: string,
  addresses: PeerAddresses,
  certificateFiles?: CertificateFiles,
): Promise<Verification> {
  const tables = loadTables(join(folder, 'tables'));
  const tools = loadSuiteTools(folder);
  let address = '';
  const { log } = createTelemetry({ service: 'writ-verify', logLevel: 'silent' });
  const certificates = certificateFiles && (await openCertificates(certificateFiles, log));
  const peers = await openTestPeers(addresses, () => address, tools, certificates).catch(
    (error) => {
      certificates?.close();
      throw error;
    },
  );
  return {
    addresses: peers.addresses,
    toolsFile: join(folder, 'tools.yaml'),
    trustDomain: certificates?.trustDomain,
    run: async (options) => {
      address = options.address;
      const gateway = connectGateway(address, certificates);
      try {
        await waitUntilServing(gateway, options.waitMs);
        const hasTls = certificates !== undefined;
        await runTables({ peers, gateway, hasTls, folder, tools, tables, options });
      } finally {
        gateway.close();
      }
    },
    close: async () => {
      await peers.close();
      certificates?.close();
    },
  };
}

interface Run {
  readonly peers: TestPeers;
  readonly gateway: GatewayUnderTest;
  readonly hasTls: boolean;
  readonly folder: string;
  readonly tools: readonly ToolDefinitionRow[];
  readonly tables: readonly Table[];
  readonly options: RunOptions;
}

async function runTables({
  peers,
  gateway,
  hasTls,
  folder,
  tools,
  tables,
  options,
}: Run): Promise<void> {
  const { only = '', onResult } = options;
  const chosen = tables.filter(({ name }) => name.includes(only));
  if (chosen.length === 0) {
    const names = tables.map(({ name }) => name).join(', ');
    throw new InvalidRequestError(
      'UNKNOWN_TABLE',
      `No table matches ${only}. Available tables: ${names}.`,
    );
  }
  const digests = await checkRegistry(gateway, peers, tools, onResult);
  // Unique names, so that the same gateway can be verified again.
  const suffix = newId('v').slice(-10);
  let count = 0;
  for (const table of chosen) {
    const { cases } = table;
    const restarts = new RestartBarrier(table.oneByOne ? 1 : cases.length, async () => {
      await options.restart?.();
      await waitUntilServing(gateway, options.waitMs);
    });
    const one = async (each: Case): Promise<void> => {
      count += 1;
      const names = { id: `${suffix}${count}`, digests };
      const restart = () => restarts.arrive();
      const missing = missingFor(each, hasTls, options);
      const outcome = await outcomeOf(missing, () =>
        new CaseRun({ peers, gateway, names, folder, restart }).run(each),
      );
      restarts.caseEnded();
      onResult({ table: table.name, name: each.name, spec: each.spec, ...outcome });
    };
    if (table.oneByOne) for (const each of cases) await one(each);
    else await Promise.all(cases.map(one));
  }
}

/** The missing prerequisite of a case; undefined when there is none. */
function missingFor({ steps }: Case, hasTls: boolean, { restart }: RunOptions): string | undefined {
  if (restart === undefined && steps.some((step) => step.restart))
    return 'requires --restart-command';
  if (!hasTls && steps.some((step) => step.certificate ?? step.call?.certificate))
    return 'requires --tls-cert-file';
  return undefined;
}

async function outcomeOf(
  missing: string | undefined,
  run: () => Promise<void>,
): Promise<Pick<CaseResult, 'outcome' | 'detail'>> {
  if (missing !== undefined) return { outcome: 'skipped', detail: missing };
  try {
    await run();
    return { outcome: 'passed', detail: '' };
  } catch (error) {
    return { outcome: 'failed', detail: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Compares the gateway's registry with the suite's tools and reports one result for each tool. A difference may be the
 * cause of later failures.
 * @returns digests of the definitions, by tool
 */
async function checkRegistry(
  gateway: GatewayUnderTest,
  peers: TestPeers,
  tools: readonly ToolDefinitionRow[],
  onResult: RunOptions['onResult'],
): Promise<ReadonlyMap<string, string>> {
  const headers = callerHeaders(peers, 'supervisor', 'tool-gateway');
  const listed = await gateway.client('supervisor').listTools({}, { headers });
  const digests = new Map(listed.tools.map((tool) => [tool.name, tool.definitionDigest]));
  for (const row of tools) {
    const tool = listed.tools.find(({ name }) => name === row.name);
    const view = tool && (toJson(ToolDefinitionSchema, tool, AS_CONTRACT) as JsonObject);
    const fault =
      mismatch(view, { ...listedAs(row), definition_digest: { matches: '.' } }) ??
      mismatch(parsed(tool?.inputSchemaJson ?? ''), row.input_schema, 'input_schema_json');
    onResult({
      table: 'registry',
      name: `lists ${row.name} as tools.yaml declares it`,
      spec: ['TG-6'],
      outcome: fault === undefined ? 'passed' : 'failed',
      detail: fault ?? '',
    });
  }
  return digests;
}

/** The parsed JSON; the text itself when it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Waits until the gateway is ready. */
async function waitUntilServing(gateway: GatewayUnderTest, waitMs: number): Promise<void> {
  const until = performance.now() + waitMs;
  let why = '';
  const notServing = (error: unknown): boolean => {
    why = error instanceof Error ? ` Last error: ${error.message}` : '';
    return false;
  };
  while (!(await isServing(gateway, '').catch(notServing))) {
    if (performance.now() > until) {
      const { address } = gateway;
      const message = `The gateway at ${address} was not ready within ${waitMs / 1000} s.${why}`;
      throw new UnavailableError('NOT_SERVING', message, { address });
    }
    await setTimeout(POLL_INTERVAL_MS);
  }
}
