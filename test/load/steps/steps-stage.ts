import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { COMPILE_CACHE } from '../program.ts';
import { type CountingModel, startCountingModel } from './counting-model.ts';

/** What a platform process tells of itself. */
export interface Figures {
  /** Durable commits of all services that a request waited for. */
  readonly commits: number;
  /** Calls between services by RPC; only with `countHops`. */
  readonly hops: Readonly<Record<string, number>>;
  /** Resident memory, bytes. */
  readonly rss: number;
  /** Time on a processor so far, milliseconds. */
  readonly cpuMs: number;
}

/** How the platform is started. */
export interface StageOptions {
  /** How far the agents count: one `counter-<n>` each. */
  readonly counts: readonly number[];
  /** Tokens of a conversation that the model sees; everything when left out. */
  readonly contextWindow?: number;
  /** Count the calls between services: that takes time of its own. */
  readonly countHops?: boolean;
  /** Flags for node itself. */
  readonly flags?: readonly string[];
}

/** An embedded platform in a process of its own, with agents that count, one tool call a step. */
export class StepsStage {
  readonly dataDir: string;
  readonly model: CountingModel;
  readonly #options: StageOptions;
  #child: ChildProcess | undefined;
  #client: WritClient | undefined;

  private constructor(dataDir: string, model: CountingModel, options: StageOptions) {
    this.dataDir = dataDir;
    this.model = model;
    this.#options = options;
  }

  /** Starts everything. */
  static async start(options: StageOptions): Promise<StepsStage> {
    const dataDir = await mkdtemp(join(tmpdir(), 'writ-steps-'));
    const stage = new StepsStage(dataDir, await startCountingModel(), options);
    await stage.#writeFiles();
    await stage.startPlatform();
    return stage;
  }

  /** A client of the platform. */
  get client(): WritClient {
    if (this.#client === undefined) throw new Error('The platform is not up.');
    return this.#client;
  }

  /** Starts the platform again on the same data. */
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
        ...(this.#options.countHops === true && { STEPS_HOPS: '1' }),
      },
    });
    this.#child = child;
    const [door] = (await once(child, 'message')) as [{ edgeUrl: string; apiKey: string }];
    this.#client = createWritClient({ baseUrl: door.edgeUrl, apiKey: door.apiKey });
  }

  /** Kills the platform without warning. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** What the platform tells of itself. */
  async figures(): Promise<Figures> {
    const child = this.#child;
    if (child === undefined) throw new Error('The platform is not up.');
    const answered = once(child, 'message');
    child.send('figures');
    const [figures] = (await answered) as [Figures];
    return figures;
  }

  /** Starts a run that counts. */
  async startRun(count: number, goal: string): Promise<string> {
    const { run } = await this.client.runs.startRun({
      requestId: newId('req'),
      agent: `counter-${count}`,
      goal,
    });
    return run?.runId ?? '';
  }

  /** Counts once; resolves when the run has ended well. */
  async count(count: number, goal: string): Promise<Run> {
    return await this.untilEnded(await this.startRun(count, goal), count);
  }

  /** Resolves when a run that counts has ended well. */
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

  /** Stops everything and removes the data. */
  async close(): Promise<void> {
    await this.#end('SIGTERM');
    await this.model.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async #writeFiles(): Promise<void> {
    const { counts, contextWindow } = this.#options;
    const most = 1_000_000;
    const files = {
      agents: {
        agents: counts.map((count) => ({
          name: `counter-${count}`,
          kind: 'react',
          instructions: `Count to ${count}.`,
          model: { model: 'counting' },
          tools: ['count'],
          limits: { max_iterations: most, max_steps: most, max_tool_calls: most },
          ...(contextWindow !== undefined && { context: { context_window: contextWindow } }),
        })),
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
          { id: 'final', match: { kind: 'final' }, decide: 'approve', reason: 'done', risk: 5 },
        ],
      },
      tools: {
        tools: [
          {
            name: 'count',
            description: 'Gives back a number.',
            input_schema: {
              type: 'object',
              properties: { n: { type: 'integer' } },
              required: ['n'],
            },
            side_effect: 'idempotent',
            max_calls_per_agent: most,
            max_repeats: most,
            risk: 0,
            source: 'steps',
          },
        ],
        sources: {
          steps: {
            kind: 'local',
            module: fileURLToPath(new URL('count-tool.ts', import.meta.url)),
            max_in_flight: 256,
          },
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
            max_in_flight: 256,
          },
        },
      },
    };
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(this.dataDir, `${name}.yaml`), JSON.stringify(content));
    }
  }
}
