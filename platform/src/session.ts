import { mkdirSync } from 'node:fs';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import { createTelemetry, traceparentOf, withSpan } from '@writ/telemetry';
import { type PlatformOptions, readPlatformConfig } from './config.ts';
import { followRun, type RunFollower } from './console/follow-run.ts';
import type { Human } from './console/human.ts';
import { scriptOf } from './example.ts';
import { type ModelSource, openModelSource } from './model-source.ts';
import { type Platform, startPlatform } from './platform.ts';

/** An example with the platform that runs it, and a client of its public door. */
export interface Session {
  readonly platform: Platform;
  readonly client: WritClient;
  readonly model: ModelSource;
  /** Starts the example's job and follows it to its end; the whole run is one trace that begins here. */
  runJob(human: Human, follower: RunFollower & { onStart(run: Run): void }): Promise<Run>;
  close(): Promise<void>;
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
    return {
      platform,
      client,
      model,
      runJob: (human, follower) =>
        withSpan(telemetry.tracer, `run ${example.name}`, {}, async () => {
          const { run } = await client.runs.startRun({
            requestId: newId('req'),
            agent: script.agent ?? example.agent,
            goal: example.goal,
            ...(model.simulated ? { model: `sim-${script.name}` } : {}),
          });
          if (run === undefined) throw new Error('StartRun answered without a run.');
          follower.onStart(run);
          return await followRun(client, run.runId, human, follower);
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
