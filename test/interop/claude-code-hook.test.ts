import { canonicalJson, type JsonObject, newId, sha256Hex } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { describe, expect, it } from 'vitest';
import {
  type McpRun,
  pendingApproval,
  post,
  refundPlatform,
  startMcpRun,
  verifiedAudit,
} from '../agent-proxy/mcp-run.ts';
import { approveEdited } from '../approve-edited.ts';

const AGENTS = `
agents:
  - name: refund-bot
    kind: external
    model: { model: refund-desk }
    tools: [get_refund_context]
    sub_agents: [{ name: helper-bot }]
  - name: helper-bot
    kind: external
    delegate_only: true
    model: { model: refund-desk }
`;
const POLICY = `
policy: coder
rules:
  - { id: list, match: { kind: client_tool, tool: Bash }, when: args.command == "ls", decide: approve, reason: harmless }
  - { id: shell, match: { kind: client_tool, tool: Bash }, decide: escalate, reason: shell, editable: [command] }
  - { id: seen, match: { kind: client_tool, tool: Bash }, decide: approve, reason: seen_by_a_person }
  - { id: helper, match: { kind: delegation, target: [helper-bot] }, decide: approve, reason: known_helper }
human: { four_eyes: false }
`;
const REMOVE = { command: 'rm -rf build', description: 'Delete the build output' };

interface HookOutput {
  readonly permissionDecision: 'allow' | 'deny';
  readonly permissionDecisionReason: string;
  readonly updatedInput?: object;
}

/** Returns the body of the hook that Claude Code sends before it executes a tool. */
function preToolUse(input: object, more: object = {}): object {
  return {
    session_id: '0b6ff1e4-3a0c-4e0f-9d9b-7d8c8ef1b3a2',
    transcript_path: '/home/dev/.claude/projects/app/0b6ff1e4.jsonl',
    cwd: '/home/dev/app',
    permission_mode: 'default',
    hook_event_name: 'PreToolUse',
    tool_name: 'Bash',
    tool_input: input,
    tool_use_id: `toolu_${newId('use')}`,
    ...more,
  };
}

/** Sends a hook as Claude Code does; a status other than 200 would let the call through. */
async function hook(
  { url, token }: Pick<McpRun, 'url' | 'token'>,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<HookOutput> {
  const response = await fetch(new URL('/hooks/claude-code', url), {
    method: 'POST',
    signal: signal ?? null,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  const { hookSpecificOutput } = (await response.json()) as {
    hookSpecificOutput: HookOutput & { hookEventName: string };
  };
  expect(hookSpecificOutput.hookEventName).toBe('PreToolUse');
  return hookSpecificOutput;
}

async function startRun(): Promise<{ readonly test: TestPlatform; readonly run: McpRun }> {
  const test = await refundPlatform({
    files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY },
  });
  return { test, run: await startMcpRun(test) };
}

const LIST_TOOLS = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** A hook timeout of 11 seconds; agent-proxy answers 10 seconds earlier, after one second. */
const SHORT = { 'x-writ-hook-timeout': '11' };

describe('the hook of Claude Code', () => {
  it('executes the shell command that a person edited, and the audit chain shows it (AP-5, SV-5, SV-8)', async () => {
    const { test, run } = await startRun();
    const call = preToolUse(REMOVE);
    const answer = hook(run, call);
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
    const edited = {
      permissionDecision: 'allow',
      updatedInput: { ...REMOVE, command: 'rm -rf build/tmp' },
    };
    expect(await answer).toMatchObject(edited);
    // A retry of the hook is the same call, and gets the same answer.
    expect(await hook(run, call)).toMatchObject(edited);
    const records = await verifiedAudit(test);
    expect(records).toContainEqual(
      expect.objectContaining({ kind: 'decision', action_kind: 'client_tool', reason: 'shell' }),
    );
    expect(records.filter(({ kind }) => kind === 'writ' || kind === 'receipt')).toEqual([]);
  });

  it('denies a call until a person has decided, and applies the approval to only one repeated call (AP-4, AP-5)', async () => {
    const { test, run } = await startRun();
    const denied = await hook(run, preToolUse(REMOVE), SHORT);
    const { approvalId } = await pendingApproval(test, run.runId);
    expect(denied.permissionDecision).toBe('deny');
    expect(denied.permissionDecisionReason).toContain(`waits for approval ${approvalId}`);
    await approveEdited(test, approvalId);
    // The model repeats the call with new ids; Claude Code would execute every allowed repeat.
    const repeats = await Promise.all(
      Array.from({ length: 20 }, () => hook(run, preToolUse(REMOVE), SHORT)),
    );
    const allowed = repeats.filter(({ permissionDecision }) => permissionDecision === 'allow');
    expect(allowed).toHaveLength(1);
  });

  it('denies a waiting call when agent-proxy shuts down, because the client executes it after a lost connection (AP-5, SYS-4)', async () => {
    const { test, run } = await startRun();
    const waiting = hook(run, preToolUse(REMOVE));
    await pendingApproval(test, run.runId);
    const [denied] = await Promise.all([waiting, test.platform.stop()]);
    expect(denied).toMatchObject({
      permissionDecision: 'deny',
      permissionDecisionReason: 'agent-proxy is shutting down; repeat the request.',
    });
  });

  it('records outcome, digest and size of the result of an executed call, but not the result itself (AP-5)', async () => {
    const lines: string[] = [];
    const test = await refundPlatform({
      files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY },
      env: { WRIT_LOG_LEVEL: 'info' },
      onLogLine: (line) => void lines.push(line),
    });
    const run = await startMcpRun(test);
    const report = async (call: object) => {
      const response = await fetch(new URL('/hooks/claude-code', run.url), {
        method: 'POST',
        headers: { authorization: `Bearer ${run.token}` },
        body: JSON.stringify(call),
      });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({});
    };
    const call = preToolUse({ command: 'ls' });
    expect((await hook(run, call)).permissionDecision).toBe('allow');
    const stdout = 'the content of a secret file';
    const after = { hook_event_name: 'PostToolUse', tool_response: { stdout, interrupted: false } };
    await report({ ...call, ...after });
    // Only the first report is recorded; a retry of the hook or a different report changes nothing.
    await report({ ...call, ...after, tool_response: 'other' });
    const failed = { hook_event_name: 'PostToolUseFailure', error: stdout };
    await report({ ...preToolUse({ command: 'df' }), ...failed });
    await report({ hook_event_name: 'PostToolUse' });
    const reports = () =>
      lines
        .map((line) => JSON.parse(line) as JsonObject)
        .filter(({ msg }) => String(msg).startsWith('client tool executed'));
    await expect.poll(reports).toHaveLength(2);
    const json = canonicalJson(after.tool_response);
    const text = canonicalJson(stdout);
    const ok = { status: 'ok', sha256: sha256Hex(json), bytes: json.length };
    const bad = { status: 'failed', sha256: sha256Hex(text), bytes: text.length };
    expect(reports()).toMatchObject([
      { tool: 'Bash', run_id: run.runId, msg: 'client tool executed', ...ok },
      { tool: 'Bash', run_id: run.runId, msg: 'client tool executed without a review', ...bad },
    ]);
    const logged = lines.join('\n');
    expect(logged).toContain('result of a client tool not recorded');
    expect(logged).not.toContain(stdout);
  });

  it('logs a report that is too large to read, and denies it because its event is unknown (AP-5)', async () => {
    const lines: string[] = [];
    const test = await refundPlatform({
      files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY },
      env: { WRIT_LOG_LEVEL: 'warn' },
      onLogLine: (line) => void lines.push(line),
    });
    const run = await startMcpRun(test);
    const image = 'A'.repeat(4 * 1024 * 1024);
    const after = { hook_event_name: 'PostToolUse', tool_response: { image } };
    const { permissionDecision } = await hook(run, preToolUse({ command: 'ls' }, after));
    expect(permissionDecision).toBe('deny');
    const logged = () =>
      lines
        .map((line) => JSON.parse(line) as JsonObject)
        .filter(({ msg }) => msg === 'hook of an external agent failed');
    await expect.poll(logged).toMatchObject([{ err: { reason: 'BODY_TOO_LARGE' } }]);
  });

  it('logs no warning for requests that are not authenticated, of an ended run, or disconnected (AP-5, BD-1)', async () => {
    const lines: string[] = [];
    const test = await refundPlatform({
      files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY },
      env: { WRIT_LOG_LEVEL: 'debug' },
      onLogLine: (line) => void lines.push(line),
    });
    const run = await startMcpRun(test);
    const logged = () =>
      lines
        .map((line) => JSON.parse(line) as JsonObject)
        .filter(({ msg }) => /^hook of an external|^result of a client tool/.test(String(msg)))
        .map(({ level, msg, err }) => `${level} ${msg}: ${(err as JsonObject).reason}`);
    const client = new AbortController();
    const waiting = hook(run, preToolUse(REMOVE), {}, client.signal);
    await pendingApproval(test, run.runId);
    client.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(logged).toEqual(['debug hook of an external agent failed: INTERNAL']);
    const none = { ...run, token: 'none' };
    await hook(none, preToolUse({ command: 'ls' }));
    const report = preToolUse({ command: 'ls' }, { hook_event_name: 'PostToolUse' });
    await fetch(new URL('/hooks/claude-code', run.url), {
      method: 'POST',
      body: JSON.stringify(report),
    });
    await test.client.runs.closeRun({ requestId: newId('req'), runId: run.runId });
    const reasonOf = async () =>
      (await hook(run, preToolUse({ command: 'ls' }))).permissionDecisionReason;
    await expect.poll(reasonOf).toMatch(/has ended/);
    await expect
      .poll(() => new Set(logged()))
      .toEqual(
        new Set([
          'debug hook of an external agent failed: INTERNAL',
          'debug hook of an external agent failed: TOKEN_MISSING',
          'debug result of a client tool not recorded: TOKEN_MISSING',
          'debug hook of an external agent failed: RUN_ENDED',
        ]),
      );
  });

  it('denies calls that are not approved, not valid or not allowed, always with status 200 (AP-5)', async () => {
    const { test, run } = await startRun();
    const list = { command: 'ls' };
    expect(await hook(run, preToolUse(list))).toEqual({
      hookEventName: 'PreToolUse',
      permissionDecision: 'allow',
      permissionDecisionReason: 'Approved by policy: harmless.',
    });
    // This tool is a registry tool of the agent, so the MCP endpoint reviews it; the agent has no other registry tool.
    const own = { tool_name: 'mcp__writ__get_refund_context' };
    expect((await hook(run, preToolUse({}, own))).permissionDecision).toBe('allow');
    const reasonOf = async (...request: Parameters<typeof hook>) => {
      const { permissionDecision, permissionDecisionReason } = await hook(...request);
      expect(permissionDecision).toBe('deny');
      return permissionDecisionReason;
    };
    const unruled = /no_rule_matched/;
    expect(await reasonOf(run, preToolUse({}, { tool_name: 'Write' }))).toMatch(unruled);
    expect(await reasonOf(run, preToolUse({}, { tool_name: 'mcp__writ__issue_refund' }))).toMatch(
      unruled,
    );
    const others = { tool_name: 'mcp__other__get_refund_context' };
    expect(await reasonOf(run, preToolUse({}, others))).toMatch(unruled);
    expect(await reasonOf(run, '{"hook_event_name":')).toMatch(/well-formed/);
    expect(await reasonOf(run, preToolUse(list, { hook_event_name: 'Stop' }))).toMatch(
      /hook_event_name/,
    );
    expect(await reasonOf(run, preToolUse(list, { tool_use_id: undefined }))).toMatch(
      /tool_use_id/,
    );
    expect(await reasonOf(run, preToolUse(list), { 'x-writ-hook-timeout': 'soon' })).toMatch(
      /x-writ-hook-timeout/,
    );
    expect(await reasonOf({ ...run, token: 'none' }, preToolUse(list))).toMatch(/run token/);
    const reused = preToolUse(list);
    await hook(run, reused);
    expect(await reasonOf(run, { ...reused, tool_input: REMOVE })).toMatch(/already used/);
    await test.client.runs.closeRun({ requestId: newId('req'), runId: run.runId });
    await expect.poll(() => reasonOf(run, preToolUse(list))).toMatch(/has ended/);
  });

  it('reviews the call of a sub-agent as a call of the child that its model calls created (AP-5, AP-6)', async () => {
    const { test, run } = await startRun();
    // Like a model call of the sub-agent, this request names the sub-agent in a header.
    await post(run, LIST_TOOLS, { 'x-claude-code-agent-id': 'a1b2' });
    const { agents } = await test.client.runs.listRunAgents({ runId: run.runId });
    expect(agents.map(({ agent }) => agent?.name)).toEqual(['refund-bot', 'helper-bot']);
    const [main, helper] = agents.map(({ agent }) => agent?.instance);
    const instanceOf = async (body: object) => {
      const answer = hook(run, body);
      const { approvalId, agent } = await pendingApproval(test, run.runId);
      await approveEdited(test, approvalId);
      expect((await answer).permissionDecision).toBe('allow');
      return agent?.instance;
    };
    const ofHelper = { agent_id: 'a1b2', agent_type: 'Explore' };
    expect(await instanceOf(preToolUse(REMOVE, ofHelper))).toBe(helper);
    expect(await instanceOf(preToolUse(REMOVE))).toBe(main);
    const { agents: after } = await test.client.runs.listRunAgents({ runId: run.runId });
    expect(after).toHaveLength(2);
  });
});
