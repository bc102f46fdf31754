import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@writ/kernel';
import type { TestPlatform, TestPlatformOptions } from '@writ/testing/platform';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, onTestFinished, vi } from 'vitest';
import { counter } from '../agent-proxy/counter-tools.ts';
import { ALIAS, CLAUDE, PROVIDER_KEY, proxyModels } from '../agent-proxy/external-run.ts';
import { counterFiles } from '../agent-proxy/mcp-run.ts';
import type { ScriptedModel } from '../agent-proxy/scripted-model.ts';
import { CLIENTS_FOLDER, type Ended, runProgram } from './client-programs.ts';
import { historyOf } from './reviewed-calls.ts';

const AGENTS = `
agents:
  - name: coding-bot
    kind: external
    description: A command-line coding agent.
    model: { model: ${CLAUDE}, also_allowed: [${ALIAS}] }
    tools: [wipe_disk]
    spawn: { max_agents: 10 }
    sub_agents: [{ name: coding-helper }]
  - name: coding-helper
    kind: external
    delegate_only: true
    model: { model: ${CLAUDE}, also_allowed: [${ALIAS}] }
  - name: reviewed-bot
    kind: external
    model: { model: ${CLAUDE}, also_allowed: [${ALIAS}] }
    options: { client_tools: review }
`;

/** Escalates every shell command to a person; each client has a different name for its shell tool. */
const POLICY = `
policy: coding
rules:
  - { id: wipe, match: { tool: wipe_disk }, decide: escalate, reason: wipe }
  - { id: wiped, match: { tool: wipe_disk }, decide: approve, reason: seen_by_a_person }
  - { id: bash, match: { kind: client_tool, tool: Bash }, decide: escalate, reason: shell, editable: [command] }
  - { id: exec, match: { kind: client_tool, tool: exec_command }, decide: escalate, reason: shell, editable: [cmd] }
  - { id: seen, match: { kind: client_tool }, decide: approve, reason: seen_by_a_person }
  - { id: helpers, match: { kind: delegation, target: [coding-helper] }, decide: approve, reason: known_helper }
human: { four_eyes: false }
`;

/** Starts a platform for coding agents with a scripted model and a single tool, which counts its executions. */
export async function codingPlatform(
  model: ScriptedModel,
  options: TestPlatformOptions = {},
): Promise<TestPlatform> {
  counter.runs = 0;
  counter.gate = Promise.resolve();
  const test = await startTestPlatform({
    env: { WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY },
    files: {
      ...counterFiles(join(import.meta.dirname, '../agent-proxy/counter-tools.ts')),
      WRIT_MODELS_FILE: proxyModels(model),
      WRIT_AGENTS_FILE: AGENTS,
      WRIT_POLICY_FILE: POLICY,
    },
    ...options,
  });
  onTestFinished(() => test.close());
  return test;
}

/** Creates a temporary folder with these files (content by path); the folder is removed after the test. */
export function workspace(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'writ-workspace-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

/** The environment of a coding agent: the model endpoint, its agent key or run token, and the working folder. */
export interface AgentEnvironment {
  /** Base URL of the model endpoint, with `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  readonly cwd: string;
}

/** The conversation that these programs name in their requests; requests with a run token need no conversation. */
export const CONVERSATION = 'ticket-4711';

/** Runs Claude Code until it has answered a prompt, in the mode that its documentation describes for scripts. */
export async function runClaudeCode(
  { baseUrl, token, cwd }: AgentEnvironment,
  prompt: string,
  args: readonly string[],
): Promise<Ended> {
  const launcher = join(CLIENTS_FOLDER, 'node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs');
  const command = [launcher, '-p', prompt, '--model', CLAUDE, '--output-format', 'json', ...args];
  return await isolated(cwd, command, {
    CLAUDE_CONFIG_DIR: join(cwd, '.config/claude'),
    ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ''),
    ANTHROPIC_AUTH_TOKEN: token,
    ANTHROPIC_CUSTOM_HEADERS: `X-Writ-Conversation: ${CONVERSATION}`,
    WRIT_AGENT_KEY: token,
    WRIT_CONVERSATION: CONVERSATION,
    // Disables updates, telemetry and error reports.
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  });
}

/** Runs Codex until it has answered a prompt; `config` is added to its settings. */
export async function runCodex(
  { baseUrl, token, cwd }: AgentEnvironment,
  prompt: string,
  config = '',
): Promise<Ended> {
  const home = join(cwd, '.config/codex');
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'config.toml'), `${codexConfig(baseUrl)}${config}`);
  const launcher = join(CLIENTS_FOLDER, 'node_modules/@openai/codex/bin/codex.js');
  const flags = ['--skip-git-repo-check', '--sandbox', 'danger-full-access', '--json'];
  // Skips the interactive review of hooks.
  const command = [launcher, 'exec', ...flags, '--dangerously-bypass-hook-trust', prompt];
  return await isolated(cwd, command, {
    CODEX_HOME: home,
    WRIT_AGENT_KEY: token,
    WRIT_CONVERSATION: CONVERSATION,
  });
}

/** The settings of docs/how-to/govern-an-agent.md, without updates, telemetry and plugins. */
const codexConfig = (baseUrl: string) => `
model = "${ALIAS}"
model_provider = "writ"
web_search = "disabled"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
[model_providers.writ]
name = "Writ"
base_url = "${baseUrl}"
env_key = "WRIT_AGENT_KEY"
env_http_headers = { "X-Writ-Conversation" = "WRIT_CONVERSATION" }
wire_api = "responses"
`;

/**
 * Runs a Node program with its working folder as home, and checks that the program sends no request to another machine
 * through the proxy in its environment.
 */
async function isolated(
  cwd: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const proxy = await refusingProxy();
  const ended = await runProgram(process.execPath, command, {
    cwd,
    env: { HOME: cwd, ...env, ...proxy.env },
  });
  expect(proxy.requestLines(), 'connections to other machines').toEqual([]);
  return ended;
}

/** Starts an HTTP proxy that refuses every connection and records the request lines. */
async function refusingProxy() {
  const requestLines: string[] = [];
  const server = createServer((socket) => {
    socket.once('error', () => undefined);
    socket.once('data', (data: Buffer) => {
      requestLines.push(data.toString().split('\r\n', 1).join());
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { HTTPS_PROXY: url, HTTP_PROXY: url, ALL_PROXY: url, NO_PROXY: '127.0.0.1' };
  return { env, requestLines: () => requestLines };
}

/**
 * Halts one of three sub-agents that all wait for their model, and expects that only the model call of this sub-agent
 * is aborted. The goal of their parent must be "Fan out.". Returns the instance of the halted sub-agent.
 */
export async function haltHelper(
  { client }: TestPlatform,
  runId: string,
  model: ScriptedModel,
): Promise<string> {
  const { agents } = await client.runs.listRunAgents({ runId });
  const [main, ...helpers] = agents;
  expect(helpers.map(({ agent }) => agent?.name)).toEqual(Array(3).fill('coding-helper'));
  expect(new Set(helpers.map(({ parent }) => parent?.instance))).toEqual(
    new Set([main?.agent?.instance]),
  );
  const agentInstance = helpers[1]?.agent?.instance ?? '';
  await client.control.halt({
    requestId: newId('req'),
    scope: { kind: { case: 'agent', value: { tenant: 'default', runId, agentInstance } } },
    reason: 'This one is wrong.',
    endRuns: true,
  });
  const ofHelpers = model.requests.filter((one) => !historyOf(one).includes('Fan out.'));
  expect(ofHelpers).toHaveLength(3);
  await vi.waitFor(() => expect(ofHelpers.filter(({ closed }) => closed.aborted)).toHaveLength(1));
  return agentInstance;
}

/** Expects that exactly this one of four agents was halted. */
export async function expectOneHalted(
  { client }: TestPlatform,
  runId: string,
  instance: string,
): Promise<void> {
  const { agents } = await client.runs.listRunAgents({ runId });
  expect(agents).toHaveLength(4);
  expect(agents.filter(({ stopReason }) => stopReason === 'halted')).toMatchObject([
    { agent: { instance } },
  ]);
}
