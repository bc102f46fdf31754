// The Portkey gateway in a process of its own.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_WITHIN_MS = 60_000;

/** Starts the gateway in front of a model; resolves with the options of a client that calls through it. */
export async function startPortkey(modelUrl) {
  const { PEER_PACKAGES, PEER_PORT, PATH } = process.env;
  const main = join(PEER_PACKAGES, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const child = spawn(process.execPath, [main, '--headless', `--port=${PEER_PORT}`], {
    env: { PATH, NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const address = `http://127.0.0.1:${PEER_PORT}`;
  const until = performance.now() + START_WITHIN_MS;
  while (
    !(await fetch(address).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`The gateway exited with ${child.exitCode}.`);
    if (performance.now() > until) throw new Error('The gateway did not start.');
    await sleep(50);
  }
  const defaultHeaders = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': modelUrl };
  return { client: { baseURL: `${address}/v1`, defaultHeaders }, close: () => child.kill() };
}
