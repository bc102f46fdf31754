import type { Platform } from '../platform.ts';

/** Prints all addresses and an example call. */
export function showAddresses(platform: Platform, print: (line: string) => void): void {
  print(`public    ${platform.edgeUrl}   gRPC, gRPC-Web and JSON`);
  for (const [service, address] of Object.entries(platform.addresses)) {
    print(`internal  ${address}   ${service}`);
  }
  print(`API key   ${platform.apiKey}   for development only`);
  print('');
  print('Start a run:');
  print(`  curl ${platform.edgeUrl}/writ.run.v1.RunService/StartRun \\`);
  print(`    -H 'authorization: Bearer ${platform.apiKey}' -H 'content-type: application/json' \\`);
  print(`    -d '{"requestId":"r1","agent":"refund-worker","goal":"Refund user 42."}'`);
  print('Stop with Ctrl-C.');
}
