import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';

const WRIT = resolve(import.meta.dirname, '../src/main.ts');
/** A port on which nothing listens. */
const NATS = 'nats://127.0.0.1:1';

function observe(): ChildProcess {
  const child = spawn(process.execPath, [WRIT, 'observe'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      WRIT_NATS_URL: NATS,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it('writ observe reports an unreachable NATS server once, waits for it, and exits on SIGINT (HK-3)', async () => {
  const child = observe();
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('The program has no output.');
  const [out, err] = [text(stdout), text(stderr)];
  // Waits for the first line, which is printed after a failed attempt to connect.
  await once(stdout, 'data');
  child.kill('SIGINT');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect({ code, out: await out }).toEqual({
    code: 0,
    out: 'Observing runs as soon as NATS is reachable. Stop with Ctrl-C.\n',
  });
  expect((await err).trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^NATS server \S*127\.0\.0\.1:1\S* is unreachable: .*\.$/),
  ]);
});
