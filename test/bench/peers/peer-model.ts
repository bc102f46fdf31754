/** Returns the model catalog entry of the scripted model; its limits are too high to affect the measurement. */
export const peerModel = (name: string, baseUrl: string | undefined) => ({
  base_url: baseUrl,
  api_key_env: 'PEER_KEY',
  model: name,
  priced_as: 'gpt-4.1-mini',
  context_window: 1_000_000,
  max_output_tokens: 4_096,
  timeout: '60s',
  max_retries: 0,
  max_in_flight: 256,
});

/** The tool of `writ-tool.ts`. */
export const peerTool = (inputSchema: object) => ({
  name: 'no_op',
  description: 'Does nothing.',
  input_schema: inputSchema,
  side_effect: 'idempotent',
  risk: 0,
  source: 'bench',
});
