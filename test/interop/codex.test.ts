import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, newId } from '@writ/kernel';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { counter } from '../agent-proxy/counter-tools.ts';
import { createAgentKey, startExternalRun } from '../agent-proxy/external-run.ts';
import { MovedClock, pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import type { ScriptedAnswer } from '../agent-proxy/scripted-calls.ts';
import { answerWith } from '../agent-proxy/scripted-calls.ts';
import { scriptedModel } from '../agent-proxy/scripted-model.ts';
import { approveEdited } from '../approve-edited.ts';
import { HAS_CLIENTS } from './client-programs.ts';
import {
  codingPlatform,
  expectOneHalted,
  haltHelper,
  runCodex,
  workspace,
} from './coding-agents.ts';
import { historyOf, modelOf } from './reviewed-calls.ts';

/** A tool call with a unique id. */
const call = (name: string, input: object, namespace?: string) => ({
  id: `call_${newId('use')}`,
  name,
  json: JSON.stringify(input),
  ...(namespace !== undefined && { namespace }),
});
/** Files to remove without `rm -f`, which Codex itself refuses to execute. */
const BUILD = { 'build/app.js': 'app', 'build/tmp/part.o': 'part' };

/** The hook of docs/how-to/govern-an-agent.md. */
const hookConfig = (baseUrl: string) => `
[[hooks.PreToolUse]]
[[hooks.PreToolUse.hooks]]
type = "command"
timeout = 300
command = '''curl -fsS --max-time 295 -H "Authorization: Bearer $WRIT_AGENT_KEY" -H "X-Writ-Conversation: $WRIT_CONVERSATION" -H "X-Writ-Hook-Timeout: 300" --data-binary @- ${new URL('/hooks/codex', baseUrl).href} || exit 2'''
`;

const mcpConfig = (url: string) => `
[mcp_servers.writ]
url = "${url}"
bearer_token_env_var = "WRIT_AGENT_KEY"
env_http_headers = { "X-Writ-Conversation" = "WRIT_CONVERSATION" }
tool_timeout_sec = 600
default_tools_approval_mode = "approve"
`;

/** Returns the final text of Codex. */
function resultOf(stdout: string): string | undefined {
  const events = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { readonly item?: { type: string; text?: string } });
  return events.findLast(({ item }) => item?.type === 'agent_message')?.item?.text;
}

describe.skipIf(!HAS_CLIENTS)('Codex, unmodified', { timeout: 120_000 }, () => {
  it.each([
    ['in the answer of its model', 'reviewed-bot', 'cmd'],
    ['before its hook allows it', 'coding-bot', 'command'],
  ])('executes the shell command that a person edited %s (AP-5, SV-5)', async (_, agent, field) => {
    const remove = call('exec_command', { cmd: 'rm -r build' });
    const model = await modelOf(
      { text: 'I remove it.', calls: [remove] },
      { text: 'It is clean.' },
    );
    const test = await codingPlatform(model);
    const { runId, token, baseUrl } = await startExternalRun(test, { agent });
    const cwd = workspace(BUILD);
    const config = agent === 'coding-bot' ? hookConfig(baseUrl) : '';
    const running = runCodex({ baseUrl, token, cwd }, 'Clean up.', config);
    const { approvalId } = await pendingApproval(test, runId);
    expect(existsSync(join(cwd, 'build/tmp'))).toBe(true);
    await approveEdited(test, approvalId, { [field]: 'rm -r build/tmp' });
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout), output).toBe('It is clean.');
    expect(existsSync(join(cwd, 'build/tmp'))).toBe(false);
    expect(existsSync(join(cwd, 'build/app.js'))).toBe(true);
    expect(model.requests).toHaveLength(2);
    await verifiedAudit(test);
  });

  it('executes nothing when its hook cannot be reached (AP-5)', async () => {
    const remove = call('exec_command', { cmd: 'rm -r build' });
    const model = await modelOf({ calls: [remove] }, { text: 'I must not.' });
    const test = await codingPlatform(model);
    const { token, baseUrl } = await startExternalRun(test, { agent: 'coding-bot' });
    const cwd = workspace(BUILD);
    // Nothing listens on this port. By default, Codex executes a call whose hook failed.
    const config = hookConfig('http://127.0.0.1:9');
    const { code, stdout, output } = await runCodex({ baseUrl, token, cwd }, 'Clean up.', config);
    expect(code, output).toBe(0);
    expect(resultOf(stdout), output).toBe('I must not.');
    expect(existsSync(join(cwd, 'build/tmp'))).toBe(true);
    expect(historyOf(model.requests[1])).toContain('blocked by PreToolUse hook');
  });

  it('waits ten minutes for a person in an MCP tool call, and ends with the result of the call (AP-3, AP-4)', async () => {
    const wipe = (): ScriptedAnswer => ({
      calls: [call('wipe_disk', { disk: 'sda' }, 'mcp__writ')],
    });
    const { promise: decided, resolve: resume } = Promise.withResolvers<void>();
    onTestFinished(() => resume());
    const model = await scriptedModel(async (request, response) => {
      const history = historyOf(request);
      if (history.includes('wiped')) answerWith(request, response, { text: 'It is wiped.' });
      else {
        // As the tool result instructs, the model repeats the call after a person has decided.
        if (history.includes('Not executed yet')) await decided;
        answerWith(request, response, wipe());
      }
    });
    const clock = new MovedClock();
    const systemClock: Clock = { now: () => new Date(), monotonicMs: () => performance.now() };
    const test = await codingPlatform(model, {
      clockOf: (service) => (service === 'agent-proxy' ? clock : systemClock),
    });
    const { key: token, baseUrl } = await createAgentKey(test, 'coding-bot');
    const environment = { baseUrl, token, cwd: workspace() };
    const config = mcpConfig(new URL('/mcp', baseUrl).href);
    const running = runCodex(environment, 'Wipe the disk.', config);
    const { approvalId } = await pendingApproval(test);
    const answered = vi.waitFor(() =>
      expect(historyOf(model.requests.at(-1))).toContain('Not executed yet'),
    );
    await clock.advanceUntil(answered, 10 * 60_000);
    expect(counter.runs).toBe(0);
    await test.client.approvals.decideApproval({
      requestId: newId('req'),
      approvalId,
      answer: { case: 'approve', value: {} },
    });
    resume();
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout), output).toBe('It is wiped.');
    expect(counter.runs).toBe(1);
    // Model calls and tool calls belong to one run.
    expect((await test.client.runs.listRuns({})).runs).toHaveLength(1);
    await verifiedAudit(test);
  });

  it('has its three sub-agents as children in the tree of its run, and a halt of one stops only that one (AP-6, SV-9)', async () => {
    const parts = ['a', 'b', 'c'];
    const spawns = parts.map((part) =>
      call('spawn_agent', { message: `Read part ${part}.` }, 'multi_agent_v1'),
    );
    const { promise: halted, resolve: resume } = Promise.withResolvers<void>();
    onTestFinished(() => resume());
    const model = await scriptedModel(async (request, response) => {
      const history = historyOf(request);
      const input = request.body.input as { type: string; output?: string }[];
      const results = input.flatMap(({ type, output = '' }) =>
        type === 'function_call_output' ? [output] : [],
      );
      if (!history.includes('Fan out.')) {
        await halted;
        answerWith(request, response, { text: 'The part is read.' });
      } else if (results.length === 0) answerWith(request, response, { calls: spawns });
      else if (results.length === 3) {
        const targets = results.map((text) => (JSON.parse(text) as { agent_id: string }).agent_id);
        const wait = call('wait_agent', { targets, timeout_ms: 60_000 }, 'multi_agent_v1');
        answerWith(request, response, { calls: [wait] });
      } else answerWith(request, response, { text: 'All is read.' });
    });
    const test = await codingPlatform(model);
    const { runId, token, baseUrl } = await startExternalRun(test, { agent: 'coding-bot' });
    const running = runCodex({ baseUrl, token, cwd: workspace() }, 'Fan out.');
    // The main agent waits for its three sub-agents, and each sub-agent waits for its model.
    await vi.waitFor(() => expect(model.requests).toHaveLength(5));
    const helper = await haltHelper(test, runId, model);
    resume();
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout), output).toBe('All is read.');
    await expectOneHalted(test, runId, helper);
    await verifiedAudit(test);
  });
});
