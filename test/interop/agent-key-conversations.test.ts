import { newId } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { expect, it } from 'vitest';
import {
  ALIAS,
  createAgentKey,
  type KeyHolder,
  proxyPlatform,
} from '../agent-proxy/external-run.ts';
import { post } from '../agent-proxy/mcp-run.ts';
import { answerText, scriptedModel } from '../agent-proxy/scripted-model.ts';

const AGENTS = `
agents:
  - name: support-bot
    kind: external
    model: { model: ${ALIAS} }
    tools: [get_refund_context]
`;
/** The header with which Claude Code names its conversation in model requests. */
const SESSION = { 'x-claude-code-session-id': 'session-1' };

async function keyPlatform() {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'Good day.'),
  );
  const test = await proxyPlatform(model, { WRIT_AGENTS_FILE: AGENTS });
  return { test, holder: await createAgentKey(test) };
}

/** Makes a model request and returns the id of its run. */
async function ask({ client }: KeyHolder, headers = {}): Promise<string> {
  const messages = [{ role: 'user' as const, content: newId('msg') }];
  const { response } = await client(headers)
    .chat.completions.create({ model: ALIAS, messages })
    .withResponse();
  return response.headers.get('x-writ-run-id') ?? '';
}

/** Makes a tool call of an MCP client and returns the id of its run. */
async function callTool({ key, baseUrl }: KeyHolder, headers = {}): Promise<string> {
  const params = { name: 'get_refund_context', arguments: { user_id: 42 } };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const url = new URL('/mcp', baseUrl);
  const answer = await (await post({ url, token: key }, message, headers)).text();
  return /"io\.writ\/run":"(run_\w+)"/.exec(answer)?.[1] ?? answer;
}

const countRuns = async ({ client }: TestPlatform) => (await client.runs.listRuns({})).runs.length;

it('opens two runs for a program that first makes tool calls without a conversation and then model requests with one (AP-1)', async () => {
  const { test, holder } = await keyPlatform();
  const first = await callTool(holder);
  const second = await ask(holder, SESSION);
  expect(first).toMatch(/^run_/);
  expect(second).not.toBe(first);
  // Tool calls continue to use the run of the default conversation, and model requests the run of the named
  // conversation.
  expect(await callTool(holder)).toBe(first);
  expect(await ask(holder, SESSION)).toBe(second);
  expect(await countRuns(test)).toBe(2);
});

it('opens one run when model requests come first, or when the settings of the MCP server contain the same header (AP-1)', async () => {
  const { test, holder } = await keyPlatform();
  const runId = await ask(holder, SESSION);
  expect(await callTool(holder)).toBe(runId);
  expect(await callTool(holder, SESSION)).toBe(runId);
  expect(await countRuns(test)).toBe(1);
  const other = await keyPlatform();
  const named = await callTool(other.holder, SESSION);
  expect(await ask(other.holder, SESSION)).toBe(named);
  expect(await countRuns(other.test)).toBe(1);
});
