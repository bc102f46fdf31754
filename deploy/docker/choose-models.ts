/**
 * Sets OPENAI_BASE_URL and OPENAI_API_KEY to the URL and the key of the model simulator, if the simulator is configured
 * and the environment has neither a provider key nor a provider address. If only the address is set, sets
 * OPENAI_API_KEY to `none`. A provider key is never sent to the simulator.
 */
export function chooseModels(env: NodeJS.ProcessEnv): void {
  const { WRIT_SIMULATOR_URL: simulator, WRIT_SIMULATOR_KEY: key = 'simulated' } = env;
  if (env.OPENAI_API_KEY) return;
  const isSimulated = !env.OPENAI_BASE_URL && simulator !== undefined;
  if (isSimulated) env.OPENAI_BASE_URL = simulator;
  if (isSimulated || env.OPENAI_BASE_URL) env.OPENAI_API_KEY = isSimulated ? key : 'none';
}
