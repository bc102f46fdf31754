import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '@writ/testing/distributed';
import { inputsDigest } from '../../../scripts/inputs-digest.ts';
import { runCommand } from '../../../scripts/run-command.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const FOLDER = join(ROOT, 'node_modules/.cache/writ-bench-litellm');
const STAMP = join(FOLDER, 'made-from');
const REQUIREMENTS = 'test/bench/peers/requirements.txt';
const BIN = join(FOLDER, 'python/bin');
const START_WITHIN_MS = 120_000;

/** A LiteLLM proxy in a process of its own. */
export interface LiteLlm {
  readonly baseUrl: string;
  readonly key: string;
  close(): Promise<void>;
}

/** Whether the pinned version is installed. */
export function hasLiteLlm(): boolean {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === inputsDigest([REQUIREMENTS]);
}

/**
 * Installs the pinned version (750 MB) in a separate virtual environment; does nothing when it is already installed.
 * @throws Error with the output of Python
 */
export async function installLiteLlm(): Promise<void> {
  if (hasLiteLlm()) return;
  console.log('installing LiteLLM, which takes some minutes');
  mkdirSync(FOLDER, { recursive: true });
  const pip = [join(BIN, 'python'), '-m', 'pip', 'install', '-q', '--disable-pip-version-check'];
  for (const [tool = '', ...args] of [
    [process.env.WRIT_PYTHON || 'python3', '-m', 'venv', join(FOLDER, 'python')],
    [...pip, '-r', join(ROOT, REQUIREMENTS)],
  ]) {
    const { code, output } = await runCommand(tool, ...args);
    if (code !== 0) throw new Error(`LiteLLM could not be installed:\n${output}`);
  }
  writeFileSync(STAMP, inputsDigest([REQUIREMENTS]));
}

/**
 * Starts the proxy in front of a model, with one worker and without a database, as in the first example of its
 * documentation.
 * @param alias name of the model for clients
 */
export async function startLiteLlm(modelUrl: string, alias: string): Promise<LiteLlm> {
  const [port = 0] = await freePorts(1);
  const config = join(FOLDER, 'config.json');
  const params = { model: `openai/${alias}`, api_base: modelUrl, api_key: 'none' };
  const models = [{ model_name: alias, litellm_params: params }];
  writeFileSync(config, JSON.stringify({ model_list: models }));
  // LiteLLM refuses to start with a weak key.
  const key = `sk-${randomBytes(24).toString('hex')}`;
  const child = spawn(
    join(BIN, 'litellm'),
    ['--config', config, '--host', '127.0.0.1', '--port', String(port)],
    {
      env: {
        PATH: `${BIN}:${process.env.PATH}`,
        HOME: FOLDER,
        LITELLM_MASTER_KEY: key,
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        LITELLM_LOG: 'ERROR',
      },
      stdio: 'ignore',
    },
  );
  const ended = once(child, 'exit');
  const address = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${address}/health/liveliness`).then(
      ({ ok }) => ok,
      () => false,
    );
  const until = performance.now() + START_WITHIN_MS;
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`LiteLLM exited with ${child.exitCode}.`);
    if (performance.now() > until) {
      child.kill('SIGKILL');
      await ended;
      throw new Error('LiteLLM did not start.');
    }
    await sleep(100);
  }
  return {
    baseUrl: `${address}/v1`,
    key,
    async close() {
      child.kill();
      await ended;
    },
  };
}
