import { once } from 'node:events';
import { createServer } from 'node:net';
import { newId } from '@writ/kernel';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** Models that cannot answer, each for a different reason; each is the model of one agent. */
const modelsAt = (url: string) => `
models:
  no-price: { base_url: "${url}", model: unheard-of }
  no-key: { base_url: "${url}", model: gpt-4.1-mini, api_key_env: NO_SUCH_KEY }
  no-variable: { base_url: "\${NO_SUCH_URL}", model: gpt-4.1-mini }
  no-server: { base_url: "${url}", model: gpt-4.1-mini, max_retries: 0 }
`;

const agent = (model: string) => `
  - name: ${model}
    kind: json-action
    description: An agent whose model is ${model}.
    instructions: Answer.
    final_instructions: Answer.
    model: { model: ${model} }
    tools: []
    limits: { max_steps: 2 }
    budget: { max_cost_usd: "1.00" }
`;

let url: string;
let test: TestPlatform;

beforeAll(async () => {
  url = `http://127.0.0.1:${await closedPort()}/v1`;
  const names = ['no-price', 'no-key', 'no-variable', 'no-server', 'no-such-model'];
  test = await startTestPlatform({
    files: {
      WRIT_MODELS_FILE: modelsAt(url),
      WRIT_AGENTS_FILE: `agents:${names.map(agent).join('')}`,
    },
  });
});
afterAll(() => test.close());

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

it.each([
  [
    'no-such-model',
    'error:unknown_model',
    () =>
      'Model no-such-model does not exist in the models file. Available models: no-price, no-key, no-variable, no-server.',
  ],
  [
    'no-price',
    'error:price_missing',
    () =>
      'Model no-price has no known price, but a cost cap applies (agent). Set prices for it in models.yaml.',
  ],
  [
    'no-key',
    'error:provider_key_missing',
    () => 'Model no-key requires a provider key. Set NO_SUCH_KEY and restart execution-meter.',
  ],
  [
    'no-variable',
    'error:model_variable_missing',
    () =>
      'Model no-variable requires variable NO_SUCH_URL, which is not set. Set it and restart execution-meter.',
  ],
  [
    'no-server',
    'llm_timeout',
    () =>
      `Model no-server could not be reached at ${new URL(url).origin}, or the connection was lost.`,
  ],
])(
  'a run of %s ends with %s and a sentence that says why (SV-7, SYS-3)',
  async (name, stopReason, detail) => {
    const { run } = await test.client.runs.startRun({
      requestId: newId('req'),
      agent: name,
      goal: 'Answer.',
    });
    const runId = run?.runId ?? '';
    const results = [];
    for await (const { event } of test.client.runs.watchRun({ runId })) {
      if (event?.entry.case === 'result') results.push(event.entry.value);
    }
    const { run: ended } = await test.client.runs.getRun({ runId });
    expect(results).toMatchObject([{ stopReason, detail: detail() }]);
    // A request that was never sent costs nothing.
    expect(ended?.result).toMatchObject({
      stopReason,
      detail: detail(),
      usage: { costNanoUsd: 0n },
    });
  },
);
