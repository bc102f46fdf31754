import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { COMPILE_CACHE } from '../program.ts';
import type { Work } from './count-work.ts';
import { type CountingModel, startCountingModel } from './counting-model.ts';

const KEPT_LINES = 1_000;

/** Counters of a platform process. */
export interface Counters {
  /** Durable commits by the operation that waited for them; only with `countHops`. */
  readonly commits: Readonly<Record<string, number>>;
  /** RPCs between services by method, and requests to the model provider by span name; only with `countHops`. */
  readonly hops: Readonly<Record<string, number>>;
  /** Statements, commits and signatures; only with `countWork`. */
  readonly work?: Work;
  /** Resident memory, bytes. */
  readonly rss: number;
  /** Used heap, bytes; with the flag `--expose-gc`, `counters('heap')` collects garbage first. */
  readonly heap: number;
  /** CPU time since the start, milliseconds. */
  readonly cpuMs: number;
}

/** Options of the platform. */
export interface HarnessOptions {
  /** The limits to which the agents count: one agent `counter-<n>` each. */
  readonly counts: readonly number[];
  /** Context window in tokens; default unlimited. */
  readonly contextWindow?: number;
  /** Time after which the model answers, ms; default at once. */
  readonly modelDelayMs?: number;
  /** Concurrent calls that the model and the tools accept; default 256. */
  readonly maxInFlight?: number;
  /** Count RPCs between services and commits by operation, which adds overhead. */
  readonly countHops?: boolean;
  /** Count statements, commits and signatures. */
  readonly countWork?: boolean;
  /** Runs an example with its simulated model instead of the counting agents. */
  readonly example?: string;
  /**
   * Additional agents, as in agents.yaml. They can use the tools `count` and `ask`; the calls of `ask` require the
   * approval of a person.
   */
  readonly agents?: readonly object[];
  /** More settings of the platform. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the client repeats rejected starts; default true. */
  readonly retryStarts?: boolean;
  /** Parent of the data folder; default: the folder for temporary files. */
  readonly base?: string;
  /** Flags of node. */
  readonly flags?: readonly string[];
  /** Additional entries of the other settings files. */
  readonly extra?: {
    readonly tools?: readonly object[];
    readonly sources?: Readonly<Record<string, object>>;
    readonly models?: Readonly<Record<string, object>>;
  };
}

/** The URLs and the key that a started platform reports. */
interface Started {
  readonly edgeUrl: string;
  readonly apiKey: string;
  readonly addresses: Readonly<Record<string, string>>;
}

/** An embedded platform process with agents that count, one tool call per step. */
export class StepsHarness {
  readonly dataDir: string;
  readonly model: CountingModel;
  /** The last 1,000 lines that the platform wrote to standard error. */
  readonly log: string[] = [];
  readonly #options: HarnessOptions;
  #child: ChildProcess | undefined;
  #client: WritClient | undefined;
  #started: Started | undefined;

  private constructor(dataDir: string, model: CountingModel, options: HarnessOptions) {
    this.dataDir = dataDir;
    this.model = model;
    this.#options = options;
  }

  /** Starts the model and the platform. */
  static async start(options: HarnessOptions): Promise<StepsHarness> {
    const dataDir = await mkdtemp(join(options.base ?? tmpdir(), 'writ-steps-'));
    const harness = new StepsHarness(
      dataDir,
      await startCountingModel(options.modelDelayMs),
      options,
    );
    await harness.#writeFiles();
    await harness.startPlatform();
    return harness;
  }

  /** A client of the running platform. */
  get client(): WritClient {
    if (this.#client === undefined) throw new Error('The platform is not running.');
    return this.#client;
  }

  /** The URLs and the key of the running platform. */
  get started(): Started {
    if (this.#started === undefined) throw new Error('The platform is not running.');
    return this.#started;
  }

  /** The id of the platform's process. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Starts the platform on the stored data.
   * @throws Error with the log when the process exits instead
   */
  async startPlatform(): Promise<void> {
    const program = fileURLToPath(new URL('platform-program.ts', import.meta.url));
    const child = fork(program, {
      execPath: process.execPath,
      execArgv: [...(this.#options.flags ?? [])],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        WRIT_LOG_LEVEL: 'error',
        STEPS_FOLDER: this.dataDir,
        STEPS_KEY: 'none',
        // Writes the store marker rarely, because its cost depends on time and not on runs.
        WRIT_STORE_MARKER_EVERY: '1h',
        ...(this.#options.countHops === true && { STEPS_HOPS: '1', WRIT_TRACE_INTERNALS: 'true' }),
        ...(this.#options.countWork === true && { STEPS_WORK: '1' }),
        ...(this.#options.example !== undefined && { STEPS_EXAMPLE: this.#options.example }),
        ...this.#options.env,
      },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#child = child;
    if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', this.#keep);
    const [started] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`The platform exited with ${code}:\n${this.log.slice(-5).join('\n')}`);
      }),
    ])) as [Started];
    this.#started = started;
    const { retryStarts = true } = this.#options;
    const { edgeUrl: baseUrl, apiKey } = started;
    this.#client = createWritClient({ baseUrl, apiKey, retryStarts });
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Keeps the platform idle for `ms`; statements executed in this time are not counted afterwards. */
  async learnPolls(ms: number): Promise<void> {
    await this.counters('idle');
    await sleep(ms);
    await this.counters();
  }

  /** Reads the counters of the platform. */
  async counters(message: 'idle' | 'counters' | 'heap' = 'counters'): Promise<Counters> {
    const child = this.#child;
    if (child === undefined) throw new Error('The platform is not running.');
    const answered = once(child, 'message');
    child.send(message);
    const [counters] = (await answered) as [Counters];
    return counters;
  }

  /** Starts a run that counts to `count`. */
  async startRun(count: number, goal: string): Promise<string> {
    const { run } = await this.client.runs.startRun({
      requestId: newId('req'),
      agent: `counter-${count}`,
      goal,
    });
    return run?.runId ?? '';
  }

  /** Starts a run and resolves when it has completed. */
  async count(count: number, goal: string): Promise<Run> {
    return await this.untilEnded(await this.startRun(count, goal), count);
  }

  /** Resolves when a run has completed with the expected answer. */
  async untilEnded(runId: string, count: number): Promise<Run> {
    for await (const _ of this.client.runs.watchRun({ runId })) {
      // The stream ends with the run.
    }
    const { run } = await this.client.runs.getRun({ runId });
    const { stopReason, answer } = run?.result ?? {};
    if (run === undefined || answer !== `Counted to ${count}.`) {
      throw new Error(`Counting to ${count} ended with ${stopReason}.`);
    }
    return run;
  }

  /** Stops every process and removes the data. */
  async close(): Promise<void> {
    await this.#end('SIGTERM');
    await this.model.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  readonly #keep = (line: string): void => {
    this.log.push(line);
    if (this.log.length > KEPT_LINES) this.log.shift();
  };

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async #writeFiles(): Promise<void> {
    const { counts, contextWindow, maxInFlight = 256, agents = [], extra = {} } = this.#options;
    const max = 1_000_000;
    const tool = {
      description: 'Returns a number.',
      input_schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      side_effect: 'idempotent',
      max_calls_per_agent: max,
      max_repeats: max,
      risk: 0,
      source: 'steps',
    };
    const files = {
      agents: {
        agents: [
          ...counts.map((count) => ({
            name: `counter-${count}`,
            kind: 'react',
            instructions: `Count to ${count}.`,
            model: { model: 'counting' },
            tools: ['count'],
            limits: { max_iterations: max, max_steps: max, max_tool_calls: max },
            ...(contextWindow !== undefined && { context: { context_window: contextWindow } }),
          })),
          ...agents,
        ],
      },
      policy: {
        policy: 'steps',
        facts: {
          counted: {
            kind: 'gate',
            initial: false,
            updates: [{ tool: 'count', when: '!has(result.error)', set: true }],
          },
        },
        rules: [
          { id: 'count', match: { tool: 'count' }, decide: 'approve', reason: 'fine', risk: 5 },
          { id: 'ask', match: { tool: 'ask' }, decide: 'escalate', reason: 'ask_first', risk: 5 },
          { id: 'asked', match: { tool: 'ask' }, decide: 'approve', reason: 'approved_by_human' },
          { id: 'hand-over', match: { kind: 'delegation' }, decide: 'approve', reason: 'fine' },
          { id: 'final', match: { kind: 'final' }, decide: 'approve', reason: 'done', risk: 5 },
        ],
      },
      tools: {
        tools: [{ name: 'count', ...tool }, { name: 'ask', ...tool }, ...(extra.tools ?? [])],
        sources: {
          steps: {
            kind: 'local',
            module: fileURLToPath(new URL('count-tool.ts', import.meta.url)),
            max_in_flight: maxInFlight,
          },
          ...extra.sources,
        },
      },
      models: {
        models: {
          counting: {
            base_url: this.model.url,
            api_key_env: 'STEPS_KEY',
            model: 'counting',
            priced_as: 'gpt-4.1-mini',
            context_window: 1_000_000,
            max_output_tokens: 4_096,
            timeout: '60s',
            max_retries: 2,
            max_in_flight: maxInFlight,
          },
          ...extra.models,
        },
      },
    };
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(this.dataDir, `${name}.yaml`), JSON.stringify(content));
    }
  }
}
