import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { type Clock, type JsonObject, newId } from '@writ/kernel';
import {
  startTestPlatform,
  type TestPlatform,
  type TestPlatformOptions,
} from '@writ/testing/platform';
import { expect, onTestFinished, vi } from 'vitest';
import { verifyAudit } from '../audit-export.ts';
import { counter } from './counter-tools.ts';

const AGENTS = `
agents:
  - name: refund-bot
    kind: external
    description: An agent of another framework.
    model: { model: refund-desk }
    tools: [get_refund_context, issue_refund, send_refund_email]
  - name: reader-bot
    kind: external
    model: { model: refund-desk }
    tools: [get_refund_context]
`;

/** Starts the refund desk with external agents. */
export async function refundPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const test = await startTestPlatform({ files: { WRIT_AGENTS_FILE: AGENTS }, ...options });
  onTestFinished(() => test.close());
  return test;
}

const counterTools = (module: string) => `
tools:
  - name: wipe_disk
    description: Counts its executions.
    input_schema: { type: object, properties: { disk: { type: string } }, required: [disk] }
    side_effect: destructive
    risk: 0.5
    max_repeats: 1
    source: counter
sources:
  counter: { kind: local, module: "${module}" }
`;
const COUNTER_POLICY = `
policy: counter
rules:
  - { id: ask, match: { tool: wipe_disk }, when: 'args.disk == "ask"', decide: escalate, reason: ask, risk: 80 }
  - { id: never, match: { tool: wipe_disk }, when: 'args.disk == "never"', decide: block, reason: never, risk: 90 }
  - { id: wipe, match: { tool: wipe_disk }, decide: approve, reason: wipe, risk: 10 }
human: { four_eyes: false }
`;
const COUNTER_AGENTS = `
agents:
  - name: refund-bot
    kind: external
    model: { model: refund-desk }
    tools: [wipe_disk]
`;

/**
 * Settings files of a platform with a single tool. `module` implements the tool, which is destructive and counts its
 * executions.
 */
export const counterFiles = (module: string) => ({
  WRIT_AGENTS_FILE: COUNTER_AGENTS,
  WRIT_TOOLS_FILE: counterTools(module),
  WRIT_POLICY_FILE: COUNTER_POLICY,
});

/** Starts a platform whose only tool is destructive and counts its executions (counter-tools.ts). */
export async function counterPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  counter.runs = 0;
  counter.gate = Promise.resolve();
  const files = counterFiles(`${import.meta.dirname}/counter-tools.ts`);
  return await refundPlatform({ files, ...options });
}

/**
 * A clock with a monotonic time that the test advances. Waits use the monotonic time; token expiry uses the real time.
 */
export class MovedClock implements Clock {
  #aheadMs = 0;

  now(): Date {
    return new Date();
  }

  monotonicMs(): number {
    return performance.now() + this.#aheadMs;
  }

  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Advances by `ms` immediately and again each second until `answer` settles, because the wait may start later. */
  async advanceUntil<T>(answer: Promise<T>, ms: number): Promise<T> {
    this.advance(ms);
    const timer = setInterval(() => this.advance(ms), 1_000);
    try {
      return await answer;
    } finally {
      clearInterval(timer);
    }
  }
}

/** A run of an external agent, with the URL and token for its tool calls. */
export interface McpRun {
  readonly runId: string;
  readonly token: string;
  readonly url: URL;
}

/** Starts a run of an external agent. */
export async function startMcpRun({ client }: TestPlatform, agent = 'refund-bot'): Promise<McpRun> {
  const goal = 'Answer ticket 4711.';
  const { run } = await client.runs.startRun({ requestId: newId('req'), agent, goal });
  const runId = run?.runId ?? '';
  const { token, mcpUrl } = await client.runs.issueRunToken({ runId });
  const mcp = { runId, token, url: new URL(mcpUrl) };
  // Until the run is delivered, the endpoint answers 503.
  await vi.waitFor(async () => expect((await ping(mcp)).status).toBe(200));
  return mcp;
}

function ping({ url, token }: McpRun): Promise<Response> {
  return post({ url, token }, { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
}

/** Posts one message as a client of an MCP revision before 2026-07-28 does. */
export async function post(
  { url, token }: Pick<McpRun, 'url' | 'token'>,
  message: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  });
}

/** Posts one message of revision 2026-07-28. */
export async function postModern(
  run: Pick<McpRun, 'url' | 'token'>,
  method: string,
  params: Readonly<Record<string, unknown>>,
  {
    extensions = {},
    headers = {},
    signal,
  }: {
    readonly extensions?: object;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  } = {},
) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions },
  };
  const name = String(params.name ?? params.taskId ?? '');
  const response = await fetch(run.url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${run.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name !== '' && { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
    ...(signal && { signal }),
  });
  const { result, error } = (await response.json()) as {
    readonly result?: Record<string, unknown>;
    readonly error?: { readonly code: number; readonly message: string };
  };
  return { status: response.status, result, error };
}

/** Connects the official client; `revision` selects the MCP revision that it uses. */
export async function connect(
  { url, token }: McpRun,
  revision: 'modern' | 'legacy' = 'modern',
  capabilities: object = {},
): Promise<Client> {
  const mode = revision === 'modern' ? ({ pin: '2026-07-28' } as const) : ('legacy' as const);
  const client = new Client(
    { name: 'test-client', version: '1.0.0' },
    { versionNegotiation: { mode }, capabilities },
  );
  const authProvider = { token: async () => token };
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider }));
  onTestFinished(() => client.close());
  return client;
}

/** Returns the pending approval of a run, or of any run when `runId` is empty; waits until there is one. */
export async function pendingApproval(
  { client }: Pick<TestPlatform, 'client'>,
  runId = '',
): Promise<Approval> {
  return await vi.waitFor(async () => {
    const { approvals } = await client.approvals.listApprovals({ runId });
    const approval = approvals.find(({ state }) => state === ApprovalState.PENDING);
    if (approval === undefined) throw new Error('no pending approval');
    return approval;
  });
}

/** Verifies the audit chain as `writ audit verify` does; returns its records. */
export async function verifiedAudit(test: TestPlatform): Promise<readonly JsonObject[]> {
  const { verdict, records } = await verifyAudit(test);
  expect(verdict).toMatchObject({ holds: true });
  return records;
}
