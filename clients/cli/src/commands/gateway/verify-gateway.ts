import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { spiffeId } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import type { CertificateFiles } from './certificates.ts';
import { type CaseResult, openVerification, type Verification } from './verification.ts';

/** Options of `writ gateway verify`. */
export interface VerifyOptions extends FormatOptions {
  readonly tables?: string;
  readonly supervisor: string;
  readonly worker: string;
  readonly tools: string;
  /** Seconds. */
  readonly wait: number;
  readonly only?: string;
  readonly restartCommand?: string;
  readonly tlsCaFile?: string;
  readonly tlsCertFile?: string;
  readonly tlsKeyFile?: string;
}

/** The conformance suite, in the published package and in the repository. */
const SUITES = ['../../../conformance', '../../../../../test/conformance'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

/**
 * Runs the conformance suite against a tool gateway; fails if a case fails (TG-7).
 * @throws InvalidRequestError INVALID_OPTION when only some of the TLS files are set, and what the suite throws
 */
export async function verifyGateway(
  address: string,
  options: VerifyOptions,
  io: CliIo,
): Promise<Exit> {
  const { supervisor, worker, tools, restartCommand, only } = options;
  const verification = await openVerification(
    options.tables ?? SUITES.find((folder) => existsSync(folder)) ?? '',
    { supervisor, worker, tools },
    certificateFiles(options),
  );
  const isText = options.output === 'text';
  const results: CaseResult[] = [];
  try {
    // The setup instructions are not part of the JSON or YAML output.
    for (const line of settingLines(address, verification)) (isText ? io.print : io.warn)(line);
    await verification.run({
      address,
      waitMs: options.wait * 1000,
      only,
      restart: restartCommand === undefined ? undefined : () => shell(restartCommand),
      onResult: (result) => {
        results.push(result);
        if (isText) io.print(lineOf(result));
      },
    });
  } finally {
    await verification.close();
  }
  const count = (outcome: CaseResult['outcome']) =>
    results.filter((result) => result.outcome === outcome).length;
  const counts = { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
  const { passed, failed, skipped } = counts;
  showData(io, options, { ...counts, results }, () => [
    `\n${passed} passed, ${failed} failed, ${skipped} skipped`,
  ]);
  return failed === 0 ? EXIT.success : EXIT.failure;
}

function settingLines(
  address: string,
  {
    addresses,
    toolsFile,
    trustDomain,
  }: Pick<Verification, 'addresses' | 'toolsFile' | 'trustDomain'>,
): string[] {
  return [
    `Start the gateway at ${address} with these settings:`,
    `  supervisor    ${addresses.supervisor}   WRIT_SUPERVISOR_ADDRESS`,
    `  agent-worker  ${addresses.worker}   WRIT_AGENT_WORKER_ADDRESS`,
    `  tools         ${toolsFile}   WRIT_TOOLS_FILE`,
    `  served at     ${addresses.tools}   CONFORMANCE_TOOLS`,
    ...(trustDomain === undefined
      ? []
      : [
          `  certificate   ${spiffeId(trustDomain, 'tool-gateway')}   WRIT_TLS_CERT_FILE, WRIT_TLS_KEY_FILE, WRIT_TLS_CA_FILE`,
        ]),
    '',
  ];
}

/** @throws InvalidRequestError when only some of the files are set */
function certificateFiles({
  tlsCaFile: caFile,
  tlsCertFile: certFile,
  tlsKeyFile: keyFile,
}: VerifyOptions): CertificateFiles | undefined {
  if (caFile !== undefined && certFile !== undefined && keyFile !== undefined)
    return { caFile, certFile, keyFile };
  if ([caFile, certFile, keyFile].every((file) => file === undefined)) return undefined;
  throw new InvalidRequestError(
    'INVALID_OPTION',
    '--tls-ca-file, --tls-cert-file and --tls-key-file must be set together.',
  );
}

const MARKS = { passed: 'pass', failed: 'FAIL', skipped: 'skip' } as const;

function lineOf({ table, name, spec, outcome, detail }: CaseResult): string {
  const line = `${MARKS[outcome]}  ${table}: ${name} (${spec.join(', ')})`;
  return detail === '' ? line : `${line}: ${detail}`;
}

function shell(command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: 'ignore' });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`the restart command ended with ${code}`));
    });
  });
}
