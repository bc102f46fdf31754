import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@writ/testing/distributed';
import { startProgram } from '../load/program.ts';
import type { BenchOptions } from './bench.ts';
import { median, quantileOf } from './measure.ts';
import { installedPackages, installPackages } from './peers/install-packages.ts';
import { hasLiteLlm, installLiteLlm, startLiteLlm } from './peers/litellm.ts';
import { PROXIED_MODEL, startProxiedModel } from './proxied-model.ts';

/** Maximum time that agent-proxy may add to the first byte at p50, milliseconds. */
const MAX_ADDED_MS = 3;
const DEFAULT_ROUNDS = 10;
/** Calls of each kind in a round. */
const CALLS = 200;
const WARM_UP_CALLS = 500;
const DIRECT = 'direct';
const AGENT_PROXY = 'agent-proxy';
const PORTKEY = 'Portkey';
const LITELLM = 'LiteLLM';

/** The destination of a call. */
interface Target {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
}

/** Milliseconds to the first byte of the body for each call of one round, by target. */
type Round = ReadonlyMap<string, readonly number[]>;

/** The figures of a target, in milliseconds, for streamed or for whole answers. */
interface Figures {
  readonly target: string;
  readonly answer: 'streamed' | 'whole';
  readonly p50: number;
  readonly p95: number;
  /**
   * Median over the rounds of the difference between the medians of this target and of direct calls in the same round.
   */
  readonly addedP50: number;
}

/**
 * Measures the time to the first byte of a model call through agent-proxy and of the same call made directly (AP-2),
 * alternating call by call, streamed and not streamed, with the model and the platform in separate processes. Also
 * measures the Portkey gateway, which `--portkey` installs with the other peers, and LiteLLM, which `--litellm`
 * installs. Prints a table and writes `agent-proxy.json`. Returns whether agent-proxy adds at most {@link MAX_ADDED_MS}
 * at p50, and less than Portkey and LiteLLM if these are measured.
 */
export async function benchAgentProxy(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, outDir = 'dist/bench', profileDir } = options;
  const { portkey = false, litellm = false } = options;
  if (portkey) await installPackages();
  if (litellm) await installLiteLlm();
  const stack = new AsyncDisposableStack();
  try {
    const opened = await openTargets(stack, profileDir);
    const figures: Figures[] = [];
    for (const answer of ['streamed', 'whole'] as const) {
      const targets = await measurable(opened, answer);
      await measureRound(targets, answer, WARM_UP_CALLS);
      const measured: Round[] = [];
      for (let round = 0; round < rounds; round += 1) {
        measured.push(await measureRound(targets, answer, CALLS));
      }
      figures.push(...targets.map(({ name }) => figuresOf(name, answer, measured)));
    }
    report(figures, rounds, outDir);
    return verdict(figures);
  } finally {
    await stack.disposeAsync();
  }
}

async function openTargets(
  stack: AsyncDisposableStack,
  profileDir: string | undefined,
): Promise<readonly Target[]> {
  const model = await startProgram(fileAt('peers/model-program.ts'), {});
  stack.defer(() => model.stop());
  const modelUrl = `http://${model.address}/agent-proxy/v1`;
  const folder = await mkdtemp(join(tmpdir(), 'writ-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const proxied = await startProxiedModel(folder, modelUrl, { flags });
  stack.defer(() => proxied.close());
  const portkey = await startPortkey(stack, modelUrl);
  const litellm = await startInstalledLiteLlm(stack, modelUrl);
  const at = (
    name: string,
    baseUrl: string,
    { token = 'none', headers = {} }: { token?: string; headers?: Target['headers'] } = {},
  ): Target => {
    const agent = new Agent({ keepAlive: true });
    stack.defer(() => agent.destroy());
    const sent = { ...headers, authorization: `Bearer ${token}` };
    return { name, url: `${baseUrl}/chat/completions`, headers: sent, agent };
  };
  return [
    at(DIRECT, modelUrl),
    at(AGENT_PROXY, proxied.baseUrl, { token: proxied.token }),
    ...(portkey ? [at(PORTKEY, portkey.baseURL, { headers: portkey.defaultHeaders })] : []),
    ...(litellm ? [at(LITELLM, litellm.baseUrl, { token: litellm.key })] : []),
  ];
}

interface Gateway {
  readonly client: {
    readonly baseURL: string;
    readonly defaultHeaders: Readonly<Record<string, string>>;
  };
  close(): unknown;
}

/** Starts the Portkey gateway; undefined when it is not installed. */
async function startPortkey(stack: AsyncDisposableStack, modelUrl: string) {
  const packages = installedPackages();
  if (packages === undefined) {
    console.log('Portkey is not measured: npm run bench -- agent-proxy --portkey installs it.');
    return undefined;
  }
  const [port = 0] = await freePorts(1);
  process.env.PEER_PACKAGES = packages;
  process.env.PEER_PORT = String(port);
  const program = (await import(fileAt('peers/programs/portkey.mjs'))) as {
    startPortkey(url: string): Promise<Gateway>;
  };
  const gateway = await program.startPortkey(modelUrl);
  stack.defer(() => void gateway.close());
  return gateway.client;
}

/** Starts LiteLLM; undefined when it is not installed. */
async function startInstalledLiteLlm(stack: AsyncDisposableStack, modelUrl: string) {
  if (!hasLiteLlm()) {
    console.log('LiteLLM is not measured: npm run bench -- agent-proxy --litellm installs it.');
    return undefined;
  }
  const litellm = await startLiteLlm(modelUrl, PROXIED_MODEL);
  stack.defer(() => litellm.close());
  return litellm;
}

function fileAt(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/**
 * Returns the targets that can answer a call in the form `answer` (streamed or whole): Portkey 1.15 answers streamed
 * requests with status 500 on Node 24.
 */
async function measurable(
  targets: readonly Target[],
  answer: Figures['answer'],
): Promise<readonly Target[]> {
  const found: Target[] = [];
  for (const target of targets) {
    try {
      await firstByteMs(target, answer);
      found.push(target);
    } catch (error) {
      if (target.name === DIRECT || target.name === AGENT_PROXY) throw error;
      console.log(`${target.name} is not measured (${answer}): ${(error as Error).message}`);
    }
  }
  return found;
}

async function measureRound(
  targets: readonly Target[],
  answer: Figures['answer'],
  calls: number,
): Promise<Round> {
  const times = new Map(targets.map(({ name }) => [name, [] as number[]]));
  for (let call = 0; call < calls; call += 1) {
    for (const target of targets) {
      times.get(target.name)?.push(await firstByteMs(target, answer));
    }
  }
  return times;
}

let asked = 0;

/** Makes one call; returns the milliseconds until the first byte of the response body. */
function firstByteMs(target: Target, answer: Figures['answer']): Promise<number> {
  asked += 1;
  const messages = [{ role: 'user', content: `What is the answer to question ${asked}?` }];
  const body = JSON.stringify({ model: PROXIED_MODEL, messages, stream: answer === 'streamed' });
  const length = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const { name, url, agent } = target;
  const headers = { ...target.headers, ...length };
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const call = request(url, { method: 'POST', agent, headers }, (response) => {
      let first: number | undefined;
      response.on('data', () => {
        first ??= performance.now() - startedAt;
      });
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200 && first !== undefined) resolve(first);
        else reject(new Error(`A call (${name}) ended with status ${response.statusCode}.`));
      });
    });
    call.once('error', reject);
    call.end(body);
  });
}

function figuresOf(target: string, answer: Figures['answer'], rounds: readonly Round[]): Figures {
  const all = rounds.flatMap((round) => round.get(target) ?? []).toSorted((a, b) => a - b);
  const middle = (round: Round, name: string): number => median(round.get(name) ?? []);
  return {
    target,
    answer,
    p50: quantileOf(all, 0.5),
    p95: quantileOf(all, 0.95),
    addedP50: median(rounds.map((round) => middle(round, target) - middle(round, DIRECT))),
  };
}

function report(figures: readonly Figures[], rounds: number, outDir: string): void {
  console.log('answer    first byte   p50 ms   p95 ms   added p50 ms');
  for (const { target, answer, p50, p95, addedP50 } of figures) {
    const columns = [p50, p95].map((ms) => ms.toFixed(2).padStart(7));
    const added = target === DIRECT ? '' : addedP50.toFixed(2).padStart(13);
    console.log([answer.padEnd(8), target.padEnd(11), ...columns, added].join('  ').trimEnd());
  }
  mkdirSync(outDir, { recursive: true });
  const machine = `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`;
  const measured = { measuredAt: new Date().toISOString(), machine, rounds, calls: CALLS, figures };
  const file = join(outDir, 'agent-proxy.json');
  writeFileSync(file, `${JSON.stringify(measured, undefined, 2)}\n`);
  console.log(`written: ${file}`);
}

function verdict(figures: readonly Figures[]): boolean {
  const addedBy = (name: string) => figures.filter(({ target }) => target === name);
  const own = addedBy(AGENT_PROXY);
  const isEnough = own.every(({ addedP50 }) => addedP50 <= MAX_ADDED_MS);
  const isLessThan = (name: string) =>
    addedBy(name).every(
      ({ addedP50, answer }) =>
        (own.find((one) => one.answer === answer)?.addedP50 ?? 0) < addedP50,
    );
  const others = [PORTKEY, LITELLM].filter((name) => addedBy(name).length > 0);
  const added = own.map(({ answer, addedP50 }) => `${addedP50.toFixed(2)} ms (${answer})`);
  const comparisons = others.map((name) => `, ${isLessThan(name) ? '' : 'not '}less than ${name}`);
  const isPassed = isEnough && others.every(isLessThan);
  console.log(
    `${isPassed ? 'PASS' : 'FAIL'}: agent-proxy adds ${added.join(' and ')} to the first byte at p50 (maximum ${MAX_ADDED_MS} ms)${comparisons.join('')}.`,
  );
  return isPassed;
}
