import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, newId } from '@writ/kernel';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { counter } from '../agent-proxy/counter-tools.ts';
import { createAgentKey, startExternalRun } from '../agent-proxy/external-run.ts';
import { MovedClock, pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { answerWith } from '../agent-proxy/scripted-calls.ts';
import { scriptedModel } from '../agent-proxy/scripted-model.ts';
import { approveEdited } from '../approve-edited.ts';
import { HAS_CLIENTS } from './client-programs.ts';
import {
  CONVERSATION,
  codingPlatform,
  expectOneHalted,
  haltHelper,
  runClaudeCode,
  workspace,
} from './coding-agents.ts';
import { historyOf, modelOf } from './reviewed-calls.ts';

/** A tool call with a unique id. */
const call = (name: string, input: object) => ({
  id: `toolu_${newId('use')}`,
  name,
  json: JSON.stringify(input),
});
const BUILD = { 'build/app.js': 'app', 'build/tmp/part.o': 'part' };
const REMOVE = call('Bash', { command: 'rm -rf build', description: 'Delete the build output' });

/** Returns the final text of Claude Code. */
const resultOf = (stdout: string) => (JSON.parse(stdout) as { readonly result: string }).result;

/** Returns arguments with the MCP endpoint as `claude mcp add --transport http` configures it. */
const mcpArgs = (url: string, token: string) => {
  const headers = { Authorization: `Bearer ${token}`, 'X-Writ-Conversation': CONVERSATION };
  const servers = { mcpServers: { writ: { type: 'http', url, headers } } };
  return ['--strict-mcp-config', '--mcp-config', JSON.stringify(servers)];
};

/** The hook of docs/how-to/govern-an-agent.md. */
const hookArgs = (baseUrl: string) => {
  const hook = {
    type: 'http',
    url: new URL('/hooks/claude-code', baseUrl).href,
    headers: {
      Authorization: 'Bearer $WRIT_AGENT_KEY',
      'X-Writ-Conversation': '$WRIT_CONVERSATION',
      'X-Writ-Hook-Timeout': '300',
    },
    allowedEnvVars: ['WRIT_AGENT_KEY', 'WRIT_CONVERSATION'],
    timeout: 300,
    onFailure: 'block',
  };
  return ['--settings', JSON.stringify({ hooks: { PreToolUse: [{ hooks: [hook] }] } })];
};

describe.skipIf(!HAS_CLIENTS)('Claude Code, unmodified', { timeout: 120_000 }, () => {
  it.each([
    ['in the answer of its model', 'reviewed-bot', false],
    ['before its hook allows it', 'coding-bot', true],
  ])(
    'executes the shell command that a person edited %s (AP-5, SV-5)',
    async (_, agent, hooked) => {
      const model = await modelOf(
        { text: 'I remove it.', calls: [REMOVE] },
        { text: 'It is clean.' },
      );
      const test = await codingPlatform(model);
      const { runId, token, baseUrl } = await startExternalRun(test, { agent });
      const cwd = workspace(BUILD);
      const args = hooked ? hookArgs(baseUrl) : ['--allowedTools', 'Bash'];
      const running = runClaudeCode({ baseUrl, token, cwd }, 'Clean up.', args);
      const { approvalId } = await pendingApproval(test, runId);
      expect(existsSync(join(cwd, 'build/tmp'))).toBe(true);
      await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
      const { code, stdout, output } = await running;
      expect(code, output).toBe(0);
      expect(resultOf(stdout)).toBe('It is clean.');
      expect(existsSync(join(cwd, 'build/tmp'))).toBe(false);
      expect(existsSync(join(cwd, 'build/app.js'))).toBe(true);
      expect(model.requests).toHaveLength(2);
      if (!hooked) expect(historyOf(model.requests[1])).toContain('rm -rf build/tmp');
      await verifiedAudit(test);
    },
  );

  it('waits ten minutes for a person in an MCP tool call, and ends with the result of the call (AP-3, AP-4)', async () => {
    const model = await modelOf(
      { calls: [call('mcp__writ__wipe_disk', { disk: 'sda' })] },
      { text: 'It is wiped.' },
    );
    const clock = new MovedClock();
    const systemClock: Clock = { now: () => new Date(), monotonicMs: () => performance.now() };
    const test = await codingPlatform(model, {
      clockOf: (service) => (service === 'agent-proxy' ? clock : systemClock),
    });
    const { key: token, baseUrl } = await createAgentKey(test, 'coding-bot');
    const running = runClaudeCode({ baseUrl, token, cwd: workspace() }, 'Wipe the disk.', [
      ...mcpArgs(new URL('/mcp', baseUrl).href, token),
      '--allowedTools',
      'mcp__writ__wipe_disk',
    ]);
    const { approvalId } = await pendingApproval(test);
    clock.advance(10 * 60_000);
    expect(counter.runs).toBe(0);
    await approveEdited(test, approvalId);
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout)).toBe('It is wiped.');
    expect(counter.runs).toBe(1);
    expect(historyOf(model.requests.at(-1))).toContain('wiped');
    // Model calls and tool calls belong to one run.
    expect((await test.client.runs.listRuns({})).runs).toHaveLength(1);
    await verifiedAudit(test);
  });

  it('has its three sub-agents as children in the tree of its run, and a halt of one stops only that one (AP-6, SV-9)', async () => {
    const parts = ['a', 'b', 'c'];
    const tasks = parts.map((part) =>
      call('Agent', {
        description: `Part ${part}`,
        prompt: `Read part ${part}.`,
        subagent_type: 'general-purpose',
        run_in_background: false,
      }),
    );
    const { promise: halted, resolve: resume } = Promise.withResolvers<void>();
    onTestFinished(() => resume());
    const model = await scriptedModel(async (request, response) => {
      const history = historyOf(request);
      const part = parts.find((name) => history.includes(`Read part ${name}.`));
      if (history.includes('tool_result')) answerWith(request, response, { text: 'All is read.' });
      else if (history.includes('Fan out.')) answerWith(request, response, { calls: tasks });
      else {
        await halted;
        answerWith(request, response, { text: `Part ${part} is read.` });
      }
    });
    const test = await codingPlatform(model);
    const { runId, token, baseUrl } = await startExternalRun(test, { agent: 'coding-bot' });
    const running = runClaudeCode({ baseUrl, token, cwd: workspace() }, 'Fan out.', [
      '--allowedTools',
      'Agent',
    ]);
    // The three sub-agents wait for the model.
    await vi.waitFor(() => expect(model.requests).toHaveLength(4));
    const helper = await haltHelper(test, runId, model);
    resume();
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout)).toBe('All is read.');
    const history = historyOf(model.requests.at(-1));
    expect(parts.filter((part) => history.includes(`Part ${part} is read.`))).toHaveLength(2);
    await expectOneHalted(test, runId, helper);
    await verifiedAudit(test);
  });
});
