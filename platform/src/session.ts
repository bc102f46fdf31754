import { mkdirSync } from 'node:fs';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import { createTelemetry, traceparentOf, withSpan } from '@writ/telemetry';
import { type PlatformOptions, readPlatformConfig } from './config.ts';
import { createSayings } from './console/answer-signals.ts';
import { followRun, type RunFollower, untilWaiting } from './console/follow-run.ts';
import type { Human } from './console/human.ts';
import { scriptOf } from './example.ts';
import { type ModelSource, openModelSource } from './model-source.ts';
import { type Platform, startPlatform } from './platform.ts';

/** An example with the platform that runs it, and a client of its public door. */
export interface Session {
  readonly platform: Platform;
  readonly client: WritClient;
  readonly model: ModelSource;
  /**
   * Starts the example's job and follows it to its end; the whole run is one trace that begins here.
   * Runs that the example needs beside it are there before, and are over when this answers.
   */
  runJob(human: Human, follower: JobFollower): Promise<Run>;
  /** Says to an agent that waits what the example's world says. */
  readonly answer: NonNullable<RunFollower['answer']>;
  close(): Promise<void>;
}

/** What a follower of a job wants to hear beside the events of its run. */
export interface JobFollower extends RunFollower {
  onStart(run: Run): void;
  /** A run that stood beside the job's own has ended. */
  onOther?(run: Run): void;
}

/** What a session is opened with. */
export type SessionOptions = Omit<PlatformOptions, 'model'> & {
  /** Script of the simulated model; undefined takes the example's own. */
  readonly script: string | undefined;
};

/**
 * Opens a session.
 *
 * @throws WritError or ConfigError, one sentence that names what to mend; nothing stays behind
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
    const answer = createSayings(client, example.signals);
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
            if (other.run === undefined) throw new Error('StartRun answered without a run.');
            await untilWaiting(client, other.run.runId);
            others.push(other.run);
          }
          const { run } = await client.runs.startRun({
            requestId: newId('req'),
            agent: script.agent ?? example.agent,
            goal: example.goal,
            // The example's own script answers to every name; an agent without a model takes none.
            ...(model.simulated && script.name !== example.script
              ? { model: `sim-${script.name}` }
              : {}),
          });
          if (run === undefined) throw new Error('StartRun answered without a run.');
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
