import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { endless, partialRoute } from '@writ/rpc';
import { expect, it, onTestFinished } from 'vitest';
import { startScriptedEdge } from './scripted-edge.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const POLICY = fileURLToPath(new URL('../../../examples/refund-desk/policy.yaml', import.meta.url));

/** Starts a program; its standard error is collected. */
function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => ({ code, signal, err }));
  return { child, ended };
}

it('exits quietly with 141 when the reader of standard output has closed the pipe (PE-2)', async () => {
  const pipeClosed = Promise.withResolvers<void>();
  const approval = { approvalId: 'a', state: ApprovalState.PENDING };
  const env = await startScriptedEdge([
    partialRoute(ApprovalService, {
      watchApprovals: endless(async function* (_, { signal }) {
        yield { approval };
        await pipeClosed.promise;
        yield { approval: { ...approval, approvalId: 'b' } };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      }),
    }),
  ]);
  const { child, ended } = start(process.execPath, [MAIN, 'approvals', 'watch'], env);
  child.stdout.once('data', () => child.stdout.destroy());
  child.stdout.once('close', () => pipeClosed.resolve());
  expect(await ended).toEqual({ code: 141, signal: null, err: '' });
});

it('exits with 2 and one sentence when standard output cannot be written (PE-2, SYS-3)', async () => {
  const toFullDisk = ['-c', 'exec "$0" "$@" > /dev/full'];
  const { ended } = start('sh', [...toFullDisk, process.execPath, MAIN, 'policy', 'check', POLICY]);
  expect(await ended).toEqual({
    code: 2,
    signal: null,
    err: 'Standard output cannot be written (ENOSPC).\n',
  });
});
