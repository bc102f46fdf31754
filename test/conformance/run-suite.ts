import type { CertificateFiles } from '../../clients/cli/src/commands/gateway/certificates.ts';
import type { PeerAddresses } from '../../clients/cli/src/commands/gateway/test-peers.ts';
import {
  type CaseResult,
  openVerification,
  type RunOptions,
} from '../../clients/cli/src/commands/gateway/verification.ts';

/** The folder of the suite. */
export const SUITE = import.meta.dirname;

/** Starts a gateway that uses the peers and tools of the verification. */
export type StartGateway = (offered: {
  readonly addresses: PeerAddresses;
  readonly toolsFile: string;
}) => Promise<Pick<RunOptions, 'address' | 'restart'>>;

/** Runs the whole suite against a gateway on free ports; with `certificates`, over mutual TLS. */
export async function runSuite(
  start: StartGateway,
  certificates?: CertificateFiles,
): Promise<readonly CaseResult[]> {
  const freePort = '127.0.0.1:0';
  const addresses = { supervisor: freePort, worker: freePort, tools: freePort };
  const verification = await openVerification(SUITE, addresses, certificates);
  const results: CaseResult[] = [];
  try {
    await verification.run({
      ...(await start(verification)),
      waitMs: 15_000,
      onResult: (result) => results.push(result),
    });
  } finally {
    await verification.close();
  }
  return results;
}

/** Returns one line for each case of a table that did not pass. */
export function notPassed(results: readonly CaseResult[], table: string): readonly string[] {
  return results
    .filter((result) => result.table === table && result.outcome !== 'passed')
    .map(({ outcome, name, detail }) => `${outcome}: ${name}: ${detail}`);
}
