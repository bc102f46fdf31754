import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { endless, partialRoute } from '@writ/rpc';
import { createEdge } from '@writ/rpc/edge';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { callerPrograms, callProgram } from './caller-program.ts';

/** A supervisor whose first watch sends one event and then nothing, like a paused process; the second watch ends. */
async function silentSupervisor() {
  const watchedAfter: bigint[] = [];
  const server = await createEdge({
    host: '127.0.0.1',
    port: 0,
    gate: async () => ({ person: { subject: 'ann', tenant: 'acme', roles: ['caller'] } }),
    telemetry: createTelemetry({ service: 'supervisor', logLevel: 'silent' }),
    routes: [
      partialRoute(RunService, {
        watchRun: endless(async function* ({ afterSequence }, { signal }) {
          watchedAfter.push(afterSequence);
          if (watchedAfter.length === 1) {
            yield { event: { sequence: 1n, entry: { case: 'hook' as const, value: {} } } };
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            return;
          }
          yield { event: { sequence: 1n, entry: { case: 'heartbeat' as const, value: {} } } };
          const value = { status: RunStatus.OK, stopReason: 'success' };
          yield { event: { sequence: 2n, entry: { case: 'result' as const, value } } };
        }),
      }),
    ],
  });
  server.setServing(true);
  onTestFinished(() => server.close(0));
  return { address: server.address, watchedAfter };
}

describe('a watch that is silent', () => {
  for (const program of callerPrograms())
    it.skipIf(program.command.length === 0).concurrent(
      `is resumed after its last event by the ${program.language} client, which skips heartbeats (SYS-2, SYS-4)`,
      async () => {
        const { address, watchedAfter } = await silentSupervisor();
        const env = { WRIT_ADDRESS: address, WRIT_API_KEY: 'key' };
        const { code, lines, stderr } = await callProgram(program, env, 'watch', 'run_1');
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(watchedAfter).toEqual([0n, 1n]);
        expect(lines).toHaveLength(2);
        expect(lines[0]).toMatch(/^1 /);
        expect(lines[1]).toBe('RUN_STATUS_OK success');
      },
      60_000,
    );
});
