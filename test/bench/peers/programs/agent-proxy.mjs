// agent-proxy, in front of a platform in a process of its own.
import { startProxiedModel } from '../../proxied-model.ts';

/** Starts the platform in front of a model; resolves with the options of a client that calls through it. */
export async function startAgentProxy(modelUrl) {
  const { baseUrl, token, close } = await startProxiedModel(process.env.PEER_FOLDER, modelUrl);
  return { client: { baseURL: baseUrl, apiKey: token }, close };
}
