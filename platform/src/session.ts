import { mkdirSync } from 'node:fs';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import { createTelemetry, traceparentOf, withSpan } from '@writ/telemetry';
import { type PlatformOptions, readPlatformConfig } from './config.ts';
import { createSignalAnswers } from './console/answer-signals.ts';
import { awaitWaiting, followRun, type RunFollower } from './console/follow-run.ts';
import type { Human } from './console/human.ts';
import { scriptOf } from './example.ts';
import { type ModelSource, openModelSource } from './model-source.ts';
import { type Platform, startPlatform } from './platform.ts';

/** An example, the platform that runs it, and a client of its public port. */
export interface Session {
  readonly platform: Platform;
  readonly client: WritClient;
  readonly model: ModelSource;
  /**
   * Starts the job of the example and follows it to its end; the whole run is one trace that begins here.
   * Additional runs of the example are started before, and have ended when this resolves.
   */
  runJob(human: Human, follower: JobFollower): Promise<Run>;
  /** Sends the scripted signals of the example to waiting agents. */
  readonly answer: NonNullable<RunFollower['answer']>;
  close(): Promise<void>;
}

/** Callbacks of a follower of a job, in addition to the events of its run. */
export interface JobFollower extends RunFollower {
  onStart(run: Run): void;
  /** An additional run of the example has ended. */
  onOther?(run: Run): void;
}

/** Options of a session. */
export type SessionOptions = Omit<PlatformOptions, 'model'> & {
  /** Script of the simulated model; undefined uses that of the example. */
  readonly script: string | undefined;
};

/**
 * Opens a session.
 *
 * @throws WritError or ConfigError, one sentence that names the cause; nothing is left running
 */
export async function openSession(
  env: NodeJS.ProcessEnv,
  options: SessionOptions,
): Promise<Session> {
  const { example } = options;
  const script = scriptOf(example, options.script ?? example.script);
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const model = await openModelSource(env, example, {
    script: script.name,
    dataDir: options.dataDir,
  });
  try {
    if (options.script !== undefined && !model.simulated) throw scriptNeedsSimulator();
    const config = readPlatformConfig(env, { ...options, model });
    const telemetry = createTelemetry({ service: 'writ-client', ...config.telemetry });
    const platform = await startPlatform(config);
    const client = createWritClient({
      baseUrl: platform.edgeUrl,
      apiKey: platform.apiKey,
      traceparent: traceparentOf,
    });
    const answer = createSignalAnswers(client, example.signals);
    return {
      platform,
      client,
      model,
      answer,
      runJob: (human, follower) =>
        withSpan(telemetry.tracer, `run ${example.name}`, {}, async () => {
          const others: Run[] = [];
          for (const { agent, goal } of example.before) {
            const other = await client.runs.startRun({ requestId: newId('req'), agent, goal });
            if (other.run === undefined) throw new Error('StartRun returned no run.');
            await awaitWaiting(client, other.run.runId);
            others.push(other.run);
          }
          const { run } = await client.runs.startRun({
            requestId: newId('req'),
            agent: script.agent ?? example.agent,
            goal: example.goal,
            // The script of the example serves every model name; an agent without a model needs none.
            ...(model.simulated && script.name !== example.script
              ? { model: `sim-${script.name}` }
              : {}),
          });
          if (run === undefined) throw new Error('StartRun returned no run.');
          follower.onStart(run);
          const ended = await followRun(client, run.runId, human, { ...follower, answer });
          for (const { runId } of others) {
            const quiet = { ...follower, onEvent: () => undefined };
            follower.onOther?.(await followRun(client, runId, human, quiet));
          }
          return ended;
        }),
      close: async () => {
        await platform.stop();
        await telemetry.shutdown();
        await model.close();
      },
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}

function scriptNeedsSimulator(): InvalidRequestError {
  return new InvalidRequestError(
    'SCRIPT_NEEDS_SIMULATOR',
    '--script is for the simulated model; unset OPENAI_API_KEY and OPENAI_BASE_URL to use it.',
    { field: '--script' },
  );
}
