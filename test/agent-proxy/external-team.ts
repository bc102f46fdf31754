import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { type McpRun, post } from './mcp-run.ts';

const POLICY = resolve(import.meta.dirname, '../../examples/refund-desk/policy.yaml');
const AGENTS = `
agents:
  - name: refund-bot
    kind: external
    model: { model: refund-desk }
    tools: [get_refund_context, issue_refund]
    sub_agents: [{ name: helper-bot }]
  - name: helper-bot
    kind: external
    delegate_only: true
    model: { model: refund-desk }
    tools: [get_refund_context]
  - name: restless-bot
    kind: external
    model: { model: refund-desk }
    options: { idle_timeout: 1s }
`;
const HELPERS = `rules:
  - { id: helpers, match: { kind: delegation }, decide: approve, reason: known_helper, risk: 5 }`;
/** Arguments of a refund that requires the approval of a person. */
export const REFUND = {
  user_id: 42,
  amount_usd: 1200,
  reason: 'The annual plan was charged twice.',
};

/** Calls a tool as a client that supports neither tasks, nor automatic retries, nor progress notifications. */
export async function callTool(
  run: McpRun,
  name: string,
  args: object,
  headers = {},
): Promise<string> {
  const params = { name, arguments: args };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  return await (await post(run, message, headers)).text();
}

/** Starts the refund desk with external agents. */
export async function startTeamPlatform(): Promise<TestPlatform> {
  const policy = readFileSync(POLICY, 'utf8').replace(/^rules:/m, HELPERS);
  return await startTestPlatform({
    files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: policy },
  });
}
