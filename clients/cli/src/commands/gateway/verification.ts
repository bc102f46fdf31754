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
import { Restarts } from './restarts.ts';
import { callerHeaders } from './sent-call.ts';
import { openStage, type Stage, type StageAddresses } from './stage.ts';
import { type Case, loadTables, type Table } from './table.ts';
import { listedAs, loadSuiteTools, type ToolDefinitionRow } from './tools-of-suite.ts';

/** What became of one case. */
export interface CaseResult {
  readonly table: string;
  readonly name: string;
  readonly spec: readonly string[];
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was wrong, or why it was skipped. */
  readonly detail: string;
}

/** What {@link Verification.run} needs to know of the gateway. */
export interface RunOptions {
  /** `host:port`. */
  readonly address: string;
  /** Kills the gateway and starts it again on the same address and state; without it, crashes are skipped. */
  readonly restart?: (() => Promise<void>) | undefined;
  /** How long the gateway may take until it serves, in milliseconds. */
  readonly waitMs: number;
  /** Only tables whose name contains it. */
  readonly only?: string | undefined;
  /** Hears of every case as it ends. */
  readonly onResult: (result: CaseResult) => void;
}

/** A verification that is ready for a gateway. */
export interface Verification {
  /** What the gateway has to be configured with before it starts. */
  readonly addresses: StageAddresses;
  /** The tools.yaml that it has to serve. */
  readonly toolsFile: string;
  /** First part of the name in every certificate; undefined in cleartext. */
  readonly trustDomain: string | undefined;
  /**
   * Drives a gateway through every table (TG-7).
   * @throws UnavailableError when it does not serve in time; InvalidRequestError when no table is named so
   */
  run(options: RunOptions): Promise<void>;
  close(): Promise<void>;
}

/** Between two questions whether a gateway serves. */
const PAUSE_MS = 50;

/**
 * Opens a verification by the tables of `folder`: it listens, and waits for a gateway.
 * @param certificateFiles where services call each other over mutual TLS; left out, in cleartext
 */
export async function openVerification(
  folder: string,
  addresses: StageAddresses,
  certificateFiles?: CertificateFiles,
): Promise<Verification> {
  const tables = loadTables(join(folder, 'tables'));
  const tools = loadSuiteTools(folder);
  let address = '';
  const { log } = createTelemetry({ service: 'writ-verify', logLevel: 'silent' });
  const certificates = certificateFiles && (await openCertificates(certificateFiles, log));
  const stage = await openStage(addresses, () => address, tools, certificates).catch((error) => {
    certificates?.close();
    throw error;
  });
  return {
    addresses: stage.addresses,
    toolsFile: join(folder, 'tools.yaml'),
    trustDomain: certificates?.trustDomain,
    run: async (options) => {
      address = options.address;
      const gateway = connectGateway(address, certificates);
      try {
        await untilServing(gateway, options.waitMs);
        const hasTls = certificates !== undefined;
        await runTables({ stage, gateway, hasTls, folder, tools, tables, options });
      } finally {
        gateway.close();
      }
    },
    close: async () => {
      await stage.close();
      certificates?.close();
    },
  };
}

interface Run {
  readonly stage: Stage;
  readonly gateway: GatewayUnderTest;
  readonly hasTls: boolean;
  readonly folder: string;
  readonly tools: readonly ToolDefinitionRow[];
  readonly tables: readonly Table[];
  readonly options: RunOptions;
}

async function runTables({
  stage,
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
      `No table is named ${only}; there are ${names}.`,
    );
  }
  const digests = await checkRegistry(gateway, stage, tools, onResult);
  // Nothing of an earlier verification of the same gateway has these names.
  const suffix = newId('v').slice(-10);
  let count = 0;
  for (const table of chosen) {
    const { cases } = table;
    const restarts = new Restarts(cases.length, async () => {
      await options.restart?.();
      await untilServing(gateway, options.waitMs);
    });
    const one = async (each: Case): Promise<void> => {
      count += 1;
      const names = { id: `${suffix}${count}`, digests };
      const restart = () => restarts.arrive();
      const lacks = lackFor(each, hasTls, options);
      const outcome = await outcomeOf(lacks, () =>
        new CaseRun({ stage, gateway, names, folder, restart }).run(each),
      );
      restarts.leave();
      onResult({ table: table.name, name: each.name, spec: each.spec, ...outcome });
    };
    if (table.oneByOne) for (const each of cases) await one(each);
    else await Promise.all(cases.map(one));
  }
}

/** What a case needs and this verification has not. */
function lackFor({ steps }: Case, hasTls: boolean, { restart }: RunOptions): string | undefined {
  if (restart === undefined && steps.some((step) => step.restart))
    return 'it needs a gateway that is killed and started again: see --restart-command';
  if (!hasTls && steps.some((step) => step.certificate ?? step.call?.certificate))
    return 'it needs certificates: see --tls-cert-file';
  return undefined;
}

async function outcomeOf(
  lacks: string | undefined,
  run: () => Promise<void>,
): Promise<Pick<CaseResult, 'outcome' | 'detail'>> {
  if (lacks !== undefined) return { outcome: 'skipped', detail: lacks };
  try {
    await run();
    return { outcome: 'passed', detail: '' };
  } catch (error) {
    return { outcome: 'failed', detail: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Holds the gateway's registry against the suite's tools: a wrong one explains whatever fails later.
 * @returns digests of the definitions, by tool
 */
async function checkRegistry(
  gateway: GatewayUnderTest,
  stage: Stage,
  tools: readonly ToolDefinitionRow[],
  onResult: RunOptions['onResult'],
): Promise<ReadonlyMap<string, string>> {
  const headers = callerHeaders(stage, 'supervisor', 'tool-gateway');
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

/** What a JSON text says; the text itself when it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Asks until the gateway serves. */
async function untilServing(gateway: GatewayUnderTest, waitMs: number): Promise<void> {
  const until = Date.now() + waitMs;
  let why = '';
  const asked = (error: unknown): boolean => {
    why = error instanceof Error ? ` The last answer: ${error.message}` : '';
    return false;
  };
  while (!(await isServing(gateway, '').catch(asked))) {
    if (Date.now() > until) {
      const { address } = gateway;
      const message = `Nothing at ${address} served within ${waitMs / 1000} s.${why}`;
      throw new UnavailableError('NOT_SERVING', message, { address });
    }
    await setTimeout(PAUSE_MS);
  }
}
