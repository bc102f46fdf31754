import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from '../agent-proxy/external-run.ts';
import { answerText, answerToolCall, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { HAS_CLIENTS, runClient } from './client-programs.ts';

/** Each asks until it fails; agents have a tool, for which the model asks again and again. */
const CLIENTS = [
  ['openai, chat completions', 'openai-chat.mjs', ALIAS],
  ['openai, responses that continue each other', 'openai-responses.mjs', ALIAS],
  ['@anthropic-ai/sdk', 'anthropic.mjs', CLAUDE],
  ['ai with @ai-sdk/openai', 'vercel-ai.mjs', ALIAS],
  ['@openai/agents', 'openai-agents.mjs', ALIAS],
  ['@langchain/langgraph with @langchain/openai', 'langgraph.mjs', ALIAS],
  ['openai of Python, chat completions', 'openai_chat.py', ALIAS],
  ['openai of Python, streamed responses', 'openai_responses.py', ALIAS],
  ['anthropic of Python, streamed', 'anthropic_messages.py', CLAUDE],
  ['openai-agents of Python', 'openai_agents.py', ALIAS],
  ['langgraph with langchain-openai of Python', 'langgraph_agent.py', ALIAS],
] as const;

describe.skipIf(!HAS_CLIENTS)('an unmodified, pinned client', () => {
  it.each(CLIENTS)(
    'makes one request after the cap of its run: %s (AP-2, EM-2)',
    async (_, program, model) => {
      const scripted = await scriptedModel((request, response) => {
        const { tools } = request.body;
        if (Array.isArray(tools) && tools.length > 0) answerToolCall(request, response);
        else answerText(request, response, 'Hm.');
      });
      const test = await proxyPlatform(scripted);
      const { runId, baseUrl, token } = await startExternalRun(test, {
        runBudget: {
          $typeName: 'writ.supervision.v1.ExecutionBudget',
          maxCostNanoUsd: 20_000_000n,
        },
      });
      const counted = await countingServer(baseUrl);
      const { code, output } = await runClient(program, {
        OPENAI_BASE_URL: `${counted.url}/v1`,
        OPENAI_API_KEY: token,
        ANTHROPIC_BASE_URL: counted.url,
        ANTHROPIC_API_KEY: token,
        MODEL: model,
      });
      expect(output).toMatch(/cost budget/i);
      expect(code).not.toBe(0);
      const answered = scripted.requests.length;
      expect(answered).toBeGreaterThan(1);
      expect(counted.statuses).toEqual([...Array(answered).fill(200), 402]);
      expect(await stopReasonOf(test, runId)).toBe('budget_exhausted:cost');
    },
  );
});

/** Passes requests on to agent-proxy, and records their statuses. */
async function countingServer(baseUrl: string) {
  const statuses: (number | undefined)[] = [];
  const { hostname, port } = new URL(baseUrl);
  const server = createServer((incoming, response) => {
    const { method, url: path, headers } = incoming;
    const options = { hostname, port, method, path, headers };
    const passed = send(options, (answer) => {
      statuses.push(answer.statusCode);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${address.port}`, statuses };
}
