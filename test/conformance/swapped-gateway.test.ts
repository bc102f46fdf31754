import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { resultJson } from '@writ/client/display';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { followRun, readHuman } from '@writ/platform/terminal';
import { freePorts } from '@writ/testing/distributed';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { waitForLine } from '@writ/testing/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, pendingApproval, startMcpRun, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { approveEdited } from '../approve-edited.ts';
import { type PythonGateway, requirePython, startPythonGateway } from './python-gateway.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const python = requirePython();
const example = loadExample('refund-desk');

const TOOLS = ['get_refund_context', 'issue_refund', 'send_refund_email'];
/** The agents of the example and an external agent. */
const AGENTS = `${readFileSync(join(example.folder, 'agents.yaml'), 'utf8')}
  - name: refund-bot
    kind: external
    model: { model: refund-desk }
    tools: [${TOOLS.join(', ')}]
`;

describe.skipIf(python === undefined)('the refund desk on the Python gateway (TG-7)', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-swap-'));
  const stops: (() => Promise<void>)[] = [];
  let gateway: PythonGateway;
  let test: TestPlatform;

  beforeAll(async () => {
    const tools = `127.0.0.1:${(await freePorts(1))[0]}`;
    gateway = await startPythonGateway(python ?? '', {
      WRIT_DATA: join(dataDir, 'gateway'),
      WRIT_TOOLS_FILE: join(example.folder, 'tools.yaml'),
      WRIT_SOURCE_DESK: tools,
      WRIT_TRUST_FILE: join(dataDir, 'trust.json'),
      WRIT_RECEIPT_DELAY_MS: '0',
    });
    stops.push(() => gateway.stop());
    const platform = startTestPlatform({
      dataDir,
      env: { WRIT_TOOL_GATEWAY_ADDRESS: gateway.address },
      files: { WRIT_AGENTS_FILE: AGENTS },
    });
    const [stopTools, started] = await Promise.all([startTools(tools, gateway.address), platform]);
    test = started;
    stops.push(stopTools, () => test.close());
  }, 60_000);

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Starts the provider process of the refund desk. */
  async function startTools(address: string, gatewayAddress: string): Promise<() => Promise<void>> {
    const child = spawn(process.execPath, ['examples/refund-desk/src/provider.ts'], {
      cwd: ROOT,
      env: {
        ...process.env,
        REFUND_TOOLS_PORT: address.split(':')[1],
        WRIT_DATA: dataDir,
        WRIT_TOOL_GATEWAY_ADDRESS: gatewayAddress,
        WRIT_LOG_LEVEL: 'silent',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await waitForLine(child, /listen on/);
    return async () => {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    };
  }

  async function runScript(
    script: string,
    human: string,
    onEvent: (event: RunEvent) => void = () => undefined,
  ) {
    const { run } = await test.client.runs.startRun({
      requestId: newId('req'),
      agent: example.agent,
      goal: example.goal,
      model: `sim-${script}`,
    });
    if (run === undefined) throw new Error('StartRun answered without a run.');
    const ended = await followRun(test.client, run.runId, readHuman(human, neverAsked), {
      onEvent,
      onQuestion: () => undefined,
      onRefusedAnswer: () => undefined,
    });
    return resultJson(ended);
  }

  it('pays the approved amount once with only the gateway address changed, and the timeline contains each call once (TG-7, SV-5, SV-6, HK-1)', async () => {
    const seen: RunEvent[] = [];
    const result = await runScript('escalate-1200', 'cap:800', (event) => seen.push(event));
    expect(result).toMatchObject({ status: 'ok', stop_reason: 'success' });
    expect(toolEvents(seen)).toEqual([
      'TOOL_START get_refund_context ok',
      'TOOL_END get_refund_context ok',
      'TOOL_START issue_refund ok',
      'TOOL_END issue_refund ok',
      'TOOL_START send_refund_email ok',
      'TOOL_END send_refund_email ok',
    ]);
    expect(result.trace).toMatchObject([
      { tool: 'get_refund_context', ok: true },
      { tool: 'issue_refund', executed_from: 'human_revised', human_approved: true, ok: true },
      { tool: 'send_refund_email', ok: true },
      { tool: 'final', ok: true },
    ]);
    expect(readLedger(dataDir).refunds.map(({ amount_cents }) => amount_cents)).toEqual([80_000]);
    expect(test.platform.addresses['tool-gateway']).toBe(gateway.address);
  });

  it('stops a run that repeats a call, as the built-in gateway does (TG-7, TG-2)', async () => {
    const expected = example.scripts.find(({ name }) => name === 'repeat-call')?.expect;
    const { status, stop_reason } = await runScript('repeat-call', 'approve');
    expect({ status, stop_reason }).toEqual(expected);
  });

  it('executes MCP tool calls with edits, receipts and the limits of tools.yaml (TG-7, AP-3, AP-4)', async () => {
    const run = await startMcpRun(test);
    const client = await connect(run);
    const call = async (name: string, args: Readonly<Record<string, unknown>>) =>
      await client.callTool({ name, arguments: { user_id: 42, ...args } });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS);
    expect(await call('get_refund_context', {})).toMatchObject({
      structuredContent: { user: { name: 'Anna' } },
      _meta: { 'io.writ/receipt': expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/) },
    });
    const refund = call('issue_refund', { amount_usd: 1200, reason: 'Paid ten days ago.' });
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId, { amount_usd: 800 });
    expect(await refund).toMatchObject({
      structuredContent: { refund: { amount_usd: 800 } },
      _meta: { 'io.writ/executed_from': 'human_revised', 'io.writ/approval': approvalId },
    });
    const mail = () => call('send_refund_email', { amount_usd: 800, message: 'It is paid.' });
    // tools.yaml permits two calls of this tool; the default limit of one call with the same arguments does not apply.
    expect([await mail(), await mail()]).toMatchObject([
      { structuredContent: { status: 'ok' } },
      { structuredContent: { status: 'ok' } },
    ]);
    expect(await mail()).toMatchObject({
      isError: true,
      _meta: { 'io.writ/reason': 'loop_detected:per_tool_limit' },
    });
    const { refunds, emails } = readLedger(dataDir);
    const isOfRun = ({ run_id }: { readonly run_id: string }) => run_id === run.runId;
    expect(refunds.filter(isOfRun).map(({ amount_cents }) => amount_cents)).toEqual([80_000]);
    expect(emails.filter(isOfRun)).toHaveLength(2);
    await verifiedAudit(test);
  });
});

/** Names of the TOOL events. */
const TOOL_EVENTS: ReadonlyMap<HookEventType, string> = new Map<HookEventType, string>([
  [HookEventType.TOOL_START, 'TOOL_START'],
  [HookEventType.TOOL_END, 'TOOL_END'],
]);

/** The TOOL events of a timeline as text. */
function toolEvents(events: readonly RunEvent[]): string[] {
  return events.flatMap(({ entry }) => {
    if (entry.case !== 'hook') return [];
    const { type, toolName, status } = entry.value;
    const name = TOOL_EVENTS.get(type);
    return name === undefined ? [] : [`${name} ${toolName} ${status}`];
  });
}

function neverAsked(): never {
  throw new Error('The test does not expect a question.');
}
