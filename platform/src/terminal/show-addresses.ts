import { hasConsole } from '../has-console.ts';
import type { Platform } from '../platform.ts';

type Print = (line: string) => void;

/** Prints the addresses of all services. */
export async function showAddresses(platform: Platform, print: Print): Promise<void> {
  const { edgeUrl, modelBaseUrl, addresses } = platform;
  if (await hasConsole(edgeUrl)) print(`console   ${edgeUrl}/   in a browser`);
  print(`public    ${edgeUrl}   gRPC, gRPC-Web and JSON`);
  print(`models    ${modelBaseUrl}   for external agents`);
  for (const [service, address] of Object.entries(addresses)) {
    print(`internal  ${address}   ${service}`);
  }
}

/** A run that the hints suggest. */
export interface SuggestedRun {
  readonly agent: string;
  readonly goal: string;
}

/** Prints an example call and how to stop. */
export function showHints(
  { edgeUrl, apiKey }: Platform,
  { suggested, agents }: { readonly suggested: SuggestedRun; readonly agents: readonly string[] },
  print: Print,
): void {
  const { agent, goal } = suggested;
  const body = JSON.stringify({ requestId: 'r1', agent, goal });
  print('Start a run:');
  print(`  curl ${edgeUrl}/writ.run.v1.RunService/StartRun \\`);
  print(`    -H 'authorization: Bearer ${apiKey}' -H 'content-type: application/json' \\`);
  print(`    -d ${inShell(body)}`);
  print(`Agents: ${agents.join(', ')}.`);
  print('Stop with Ctrl-C or SIGTERM.');
}

/** Quotes a text for a POSIX shell. */
function inShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
