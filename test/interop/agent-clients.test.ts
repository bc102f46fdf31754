import { spawn } from 'node:child_process';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findInteropClients } from '../../scripts/interop-clients.ts';
import {
  ALIAS,
  CLAUDE,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from '../agent-proxy/external-run.ts';
import { answerText, answerToolCall, scriptedModel } from '../agent-proxy/scripted-model.ts';

const clients = findInteropClients();
if ('missing' in clients) {
  const notice = `The clients of other projects are not tested: ${clients.missing}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
}
const { folder, python } = 'missing' in clients ? { folder: '', python: '' } : clients;
const node = process.execPath;

/** Each asks until it fails; agents have a tool, for which the model asks again and again. */
const CLIENTS = [
  ['openai, chat completions', node, 'openai-chat.mjs', ALIAS],
  ['openai, responses that continue each other', node, 'openai-responses.mjs', ALIAS],
  ['@anthropic-ai/sdk', node, 'anthropic.mjs', CLAUDE],
  ['ai with @ai-sdk/openai', node, 'vercel-ai.mjs', ALIAS],
  ['@openai/agents', node, 'openai-agents.mjs', ALIAS],
  ['@langchain/langgraph with @langchain/openai', node, 'langgraph.mjs', ALIAS],
  ['openai of Python, chat completions', python, 'openai_chat.py', ALIAS],
  ['openai of Python, streamed responses', python, 'openai_responses.py', ALIAS],
  ['anthropic of Python, streamed', python, 'anthropic_messages.py', CLAUDE],
  ['openai-agents of Python', python, 'openai_agents.py', ALIAS],
  ['langgraph with langchain-openai of Python', python, 'langgraph_agent.py', ALIAS],
] as const;

describe.skipIf(folder === '')('an unmodified, pinned client', () => {
  it.each(CLIENTS)(
    'makes one request after the cap of its run: %s (AP-2, EM-2)',
    async (_, command, program, model) => {
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
      const { code, output } = await run(command, program, {
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

/** Runs a program to its end; of this environment it inherits only PATH. */
function run(command: string, program: string, env: Readonly<Record<string, string>>) {
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(command, [join(folder, program)], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        // Their telemetry would leave this machine.
        OPENAI_AGENTS_DISABLE_TRACING: '1',
        LANGSMITH_TRACING: 'false',
        ...env,
      },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    child.stdout.on('data', (part) => (output += part));
    child.stderr.on('data', (part) => (output += part));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
