import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  connect,
  type McpRun,
  pendingApproval,
  refundPlatform,
  startMcpRun,
  verifiedAudit,
} from '../agent-proxy/mcp-run.ts';
import { approveEdited } from '../approve-edited.ts';

const LOOK_UP = { name: 'get_refund_context', arguments: { user_id: 42 } };
const REFUND = {
  name: 'issue_refund',
  arguments: { user_id: 42, amount_usd: 1200, reason: 'Annual plan, paid ten days ago.' },
};

/** Connects a client of the previous library, @modelcontextprotocol/sdk. */
async function connectOld({ url, token }: McpRun): Promise<OldClient> {
  const client = new OldClient({ name: 'old-client', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(
    new OldTransport(url, { requestInit }) as Parameters<OldClient['connect']>[0],
  );
  onTestFinished(() => client.close());
  return client;
}

const CLIENTS = {
  'of 2026-07-28': (run: McpRun) => connect(run),
  'of 2025-11-25': (run: McpRun) => connect(run, 'legacy'),
  'of the previous library': connectOld,
};

describe.each(Object.entries(CLIENTS))('an MCP client %s', (_, open) => {
  it('lists the tools of its manifest, and calls one with review, writ and receipt (AP-3)', async () => {
    const test = await refundPlatform();
    const run = await startMcpRun(test);
    const client = await open(run);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'get_refund_context',
      'issue_refund',
      'send_refund_email',
    ]);
    expect(tools[1]).toMatchObject({
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
      inputSchema: { required: ['user_id', 'amount_usd'] },
    });
    expect(JSON.stringify(tools)).not.toMatch(/fillable|decimals/);
    const result = await client.callTool(LOOK_UP);
    expect(result.isError ?? false).toBe(false);
    expect(result.structuredContent).toMatchObject({ user: { name: 'Anna' } });
    expect(result._meta).toMatchObject({
      'io.writ/run': run.runId,
      'io.writ/executed_from': 'original',
      'io.writ/receipt': expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    });
    const reader = await open(await startMcpRun(test, 'reader-bot'));
    expect((await reader.listTools()).tools.map(({ name }) => name)).toEqual([
      'get_refund_context',
    ]);
    await expect(reader.callTool(REFUND)).rejects.toThrow('Unknown tool: issue_refund');
  });

  it('gets the refund that a person edited, and the audit chain proves it (AP-3, AP-4, SV-5, SV-6)', async () => {
    const test = await refundPlatform();
    const run = await startMcpRun(test);
    const client = await open(run);
    await client.callTool(LOOK_UP);
    const answer = client.callTool(REFUND);
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId, { amount_usd: 800 });
    const result = await answer;
    expect(result.isError ?? false).toBe(false);
    const [note] = result.content as { text: string }[];
    expect(note?.text).toMatch(
      /^Executed with changed arguments: \{"amount_usd":800,.*approved_with_cap:800\.$/,
    );
    expect(result.structuredContent).toMatchObject({ refund: { amount_usd: 800 } });
    expect(result._meta).toMatchObject({
      'io.writ/approval': approvalId,
      'io.writ/executed_from': 'human_revised',
      'io.writ/receipt': expect.any(String),
    });
    expect(readLedger(test.dataDir).refunds.map(({ amount_cents }) => amount_cents)).toEqual([
      80_000,
    ]);
    await verifiedAudit(test);
  });
});
