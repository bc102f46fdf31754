import { createWritClient, type WritClient } from '@writ/client';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import { createDataFolder } from '@writ/service';
import { createTelemetry, traceparentOf } from '@writ/telemetry';
import { checkStart } from './check/check-start.ts';
import { type PlatformOptions, readPlatformConfig } from './config.ts';
import { createDemoPeople } from './demo-people.ts';
import { createDemoRuns, type DemoRuns } from './demo-runs.ts';
import { type Example, scriptOf } from './example.ts';
import { type ModelSource, openModelSource } from './model-source.ts';
import { type Platform, startPlatform } from './platform.ts';

/**
 * A started platform with its model, a client with the development key, and functions that run an example on the
 * platform.
 */
export interface Session extends DemoRuns {
  readonly platform: Platform;
  /** A client with the development key. */
  readonly client: WritClient;
  readonly model: ModelSource;
  close(): Promise<void>;
}

/** Options of {@link openSession}. */
export type SessionOptions = Omit<PlatformOptions, 'model' | 'example'> & {
  readonly example: Example;
  /** Script of the simulated model; undefined uses that of the example. */
  readonly script: string | undefined;
};

/**
 * Starts the platform on an example with its model, and creates the clients of the demo.
 *
 * @throws WritError or ConfigError, one sentence that names the cause; nothing is left running
 */
export async function openSession(
  env: NodeJS.ProcessEnv,
  options: SessionOptions,
): Promise<Session> {
  const startTime = systemClock.now();
  const { example } = options;
  const script = scriptOf(example, options.script ?? example.script);
  createDataFolder(options.dataDir);
  const model = await openModelSource(env, example, {
    script: script.name,
    dataDir: options.dataDir,
  });
  try {
    if (options.script !== undefined && !model.simulated) throw scriptNeedsSimulator();
    const people = createDemoPeople();
    const config = readPlatformConfig(env, { ...options, model, unsavedApiKeys: people.keys });
    await checkStart(config);
    const platform = await startPlatform(config);
    // The telemetry of the client is created after the platform has started, so that a failed start leaves no export
    // running.
    const telemetry = createTelemetry({ service: 'writ-client', ...config.telemetry });
    const clientOf = (apiKey: string) =>
      createWritClient({ baseUrl: platform.edgeUrl, apiKey, traceparent: traceparentOf });
    const client = clientOf(platform.apiKey);
    const demoRuns = createDemoRuns({
      client,
      starter: clientOf(people.starterKey),
      simulated: clientOf(people.simulatedKey),
      tracer: telemetry.tracer,
      example,
      agent: script.agent ?? example.agent,
      // No model is set for the example's own script, because this script answers requests for any model, and the agent
      // may have none.
      model: model.simulated && script.name !== example.script ? `sim-${script.name}` : undefined,
      startTime,
    });
    return {
      ...demoRuns,
      platform,
      client,
      model,
      close: () =>
        platform
          .stop()
          .finally(() => telemetry.shutdown())
          .finally(() => model.close()),
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
