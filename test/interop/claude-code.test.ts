import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, newId } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { counter } from '../agent-proxy/counter-tools.ts';
import { createAgentKey, startExternalRun } from '../agent-proxy/external-run.ts';
import { MovedClock, pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { HAS_CLIENTS } from './client-programs.ts';
import { CONVERSATION, codingPlatform, runClaudeCode, workspace } from './coding-agents.ts';
import { decide, historyOf, modelOf } from './reviewed-calls.ts';

/** A call of a tool with an id of its own. */
const call = (name: string, input: object) => ({
  id: `toolu_${newId('use')}`,
  name,
  json: JSON.stringify(input),
});
const BUILD = { 'build/app.js': 'app', 'build/tmp/part.o': 'part' };
const REMOVE = call('Bash', { command: 'rm -rf build', description: 'Delete the build output' });

/** The text with which Claude Code ends. */
const resultOf = (stdout: string) => (JSON.parse(stdout) as { readonly result: string }).result;

/** The MCP endpoint, as `claude mcp add --transport http` writes it. */
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
      await decide(test, approvalId, 'rm -rf build/tmp');
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

  it('waits ten minutes for a person in a call by MCP, and ends with its result (AP-3, AP-4)', async () => {
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
    await decide(test, approvalId);
    const { code, stdout, output } = await running;
    expect(code, output).toBe(0);
    expect(resultOf(stdout)).toBe('It is wiped.');
    expect(counter.runs).toBe(1);
    expect(historyOf(model.requests.at(-1))).toContain('wiped');
    // Model calls and tool calls belong to one run.
    expect((await test.client.runs.listRuns({})).runs).toHaveLength(1);
    await verifiedAudit(test);
  });
});
