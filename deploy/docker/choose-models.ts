/**
 * The models that answer: with a key or an address in the environment those of the provider, otherwise the simulator. A
 * key is never sent to the simulator.
 */
export function chooseModels(env: NodeJS.ProcessEnv): void {
  const { WRIT_SIMULATOR_URL: simulator, WRIT_SIMULATOR_KEY: key = 'simulated' } = env;
  if (env.OPENAI_API_KEY) return;
  const isSimulated = !env.OPENAI_BASE_URL && simulator !== undefined;
  if (isSimulated) env.OPENAI_BASE_URL = simulator;
  if (isSimulated || env.OPENAI_BASE_URL) env.OPENAI_API_KEY = isSimulated ? key : 'none';
}
