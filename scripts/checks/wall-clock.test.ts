import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** Files that may read the wall clock, each with the reason. All other files use a Clock or `performance.now()`. */
const TIMES_OF_DAY: Readonly<Record<string, string>> = {
  'libs/kernel/src/time/clock.ts': 'the system clock',
  'libs/kernel/src/names/ids.ts': 'the time in a version 7 UUID',
  'libs/identity/src/tokens/read-signed-head.ts': 'the validity of a token',
  'libs/certs/src/authority.ts': 'the validity of a certificate',
  'libs/certs/src/certificate-folder.ts': 'the validity of a certificate',
  'libs/rpc/src/tls/expiry.ts': 'the validity of a certificate',
  'libs/rpc/src/tls/grpc-connections.ts': 'the validity of a certificate',
  'libs/rpc/src/tls/tls-files.ts': 'the validity of a certificate',
  'libs/rpc/src/client/client-call.ts': 'a deadline of grpc-js',
  'libs/rpc/src/loopback/loopback.ts': 'a deadline of grpc-js',
  'libs/rpc/src/replicas/replica-health.ts': 'a deadline of grpc-js',
  'libs/rpc/src/server/grpc-methods.ts': 'a deadline of grpc-js',
  'services/execution-meter/src/providers/model-call/attempt-failure.ts': 'the date of Retry-After',
};

/** The files that read the wall clock. */
function readers(): readonly string[] {
  return globSync(['{libs,services}/*/src/**/*.ts', 'platform/src/**/*.ts'])
    .filter((file) => !file.endsWith('.test.ts'))
    .filter((file) => !file.startsWith('libs/testing/'))
    .filter((file) => /\bDate\.now\b|\bnew Date\(\)/.test(readFileSync(file, 'utf8')));
}

// A step of the wall clock must not change durations that are measured within a process (ADR 21).
it('reads the wall clock only where a time of day is needed (BD-3)', () => {
  expect(readers().toSorted()).toEqual(Object.keys(TIMES_OF_DAY).toSorted());
});
