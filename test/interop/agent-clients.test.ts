import { describe, expect, it } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from '../agent-proxy/external-run.ts';
import { answerText, answerToolCall, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { HAS_CLIENTS, modelEnv, runClient } from './client-programs.ts';
import { recordingServer } from './recording-server.ts';

/** Each client sends requests until one fails; agent frameworks offer a tool that the model calls in every answer. */
const CLIENTS = [
  ['openai, chat completions', 'openai-chat.mjs', ALIAS],
  ['openai, chained responses', 'openai-responses.mjs', ALIAS],
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
    'makes only one request after its run has reached the cap: %s (AP-2, EM-2)',
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
      const { url, exchanges } = await recordingServer(baseUrl);
      const { code, output } = await runClient(program, modelEnv(url, token, model));
      expect(output).toMatch(/cost budget/i);
      expect(code).not.toBe(0);
      const answered = scripted.requests.length;
      expect(answered).toBeGreaterThan(1);
      const statuses = exchanges.map(({ status }) => status);
      expect(statuses).toEqual([...Array(answered).fill(200), 402]);
      expect(await stopReasonOf(test, runId)).toBe('budget_exhausted:cost');
    },
  );
});
