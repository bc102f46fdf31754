import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { createVerifier, readReceipt, trustPublicKeys } from '@writ/identity';
import { isJsonObject, type JsonObject, newId, systemClock } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { describe, expect, it, vi } from 'vitest';
import {
  ALIAS,
  createAgentKey,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from '../agent-proxy/external-run.ts';
import { pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { answerWith } from '../agent-proxy/scripted-calls.ts';
import { type ModelRequest, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { approveEdited } from '../approve-edited.ts';
import { HAS_CLIENTS, modelEnv, runClient } from './client-programs.ts';
import { type Exchange, recordingServer } from './recording-server.ts';

const AGENTS = `
agents:
  - name: support-bot
    kind: external
    model: { model: ${ALIAS} }
    tools: [get_refund_context, issue_refund]
`;
const REFUND = { user_id: 42, amount_usd: 1200, reason: 'Annual plan, paid ten days ago.' };
const CAPPED = /Executed with changed arguments: .*"amount_usd":800\b/;

/** The results of tool calls that a model request contains, the oldest first. */
function resultsIn({ body }: ModelRequest): string[] {
  const items = (body.input ?? []) as readonly {
    readonly type?: string;
    readonly output?: unknown;
  }[];
  return items
    .filter(({ type }) => type === 'function_call_output')
    .map(({ output }) => JSON.stringify(output).replaceAll('\\', ''));
}

/** Starts a model that looks up the customer and then requests the refund until a result reports its execution. */
async function refundModel() {
  return await scriptedModel((request, response) => {
    const results = resultsIn(request);
    const call = (name: string, input: object) => {
      const id = `call_${results.length}`;
      answerWith(request, response, { calls: [{ id, name, json: JSON.stringify(input) }] });
    };
    if (results.length === 0) call('get_refund_context', { user_id: 42 });
    else if (!CAPPED.test(results.at(-1) ?? '')) call('issue_refund', REFUND);
    else answerWith(request, response, { text: 'I refunded 800 USD.' });
  });
}

/** Credentials that the program sends as its API key. */
const CREDENTIALS = {
  'a run token': async (test: TestPlatform) => (await startExternalRun(test)).token,
  'an agent key': async (test: TestPlatform) => (await createAgentKey(test)).key,
} as const;
type Credential = keyof typeof CREDENTIALS;

/** Starts the program with base URL, key and MCP URL, and returns once its refund waits for a person. */
async function startRefund(program: string, credential: Credential) {
  const model = await refundModel();
  const test = await proxyPlatform(model, { WRIT_AGENTS_FILE: AGENTS });
  const key = await CREDENTIALS[credential](test);
  const { url, exchanges } = await recordingServer(test.platform.modelBaseUrl);
  const ended = runClient(program, {
    ...modelEnv(url, key, ALIAS),
    WRIT_MCP_URL: `${url}/mcp`,
  });
  const approval = await vi.waitFor(async () => {
    const { runs } = await test.client.runs.listRuns({});
    return await pendingApproval(test, runs[0]?.runId ?? '');
  });
  return { model, test, exchanges, ended, approval };
}

const refundedCents = ({ dataDir }: TestPlatform) =>
  readLedger(dataDir).refunds.map(({ amount_cents: cents }) => cents);

/** Approves 800 USD; expects that nothing was refunded before and that the program reports the refund. */
async function completesAt800({ test, ended, approval }: Awaited<ReturnType<typeof startRefund>>) {
  expect(refundedCents(test)).toEqual([]);
  await approveEdited(test, approval.approvalId, { amount_usd: 800 });
  const { code, output } = await ended;
  expect(output).toContain('ANSWER I refunded 800 USD.');
  expect(code).toBe(0);
  expect(refundedCents(test)).toEqual([80_000]);
}

/** Returns the `_meta` of the results that the program received, from JSON responses or event streams. */
function metasIn(exchanges: readonly Exchange[]) {
  const lines = exchanges
    .filter(({ path }) => path === '/mcp')
    .flatMap(({ answer }) => answer.split('\n').map((line) => line.replace(/^data: */, '')))
    .filter((line) => line.startsWith('{'));
  return lines.flatMap((line) => {
    const { result } = JSON.parse(line) as { readonly result?: { readonly _meta?: JsonObject } };
    return isJsonObject(result?._meta) ? [result._meta] : [];
  });
}

/** Verifies a receipt with the public keys of the gateway, and returns it. */
async function verifiedReceipt({ dataDir }: TestPlatform, token: string) {
  const jwks = await readFile(join(dataDir, 'keys', 'tool-gateway.jwks.json'), 'utf8');
  const trust = await trustPublicKeys('tool-gateway', jwks);
  return await readReceipt(createVerifier({ trust, clock: systemClock }), token);
}

const AGENT_PROGRAMS = [
  ['@openai/agents', 'refund-desk.mjs', 'a run token'],
  ['@openai/agents', 'refund-desk.mjs', 'an agent key'],
  ['openai-agents of Python', 'refund_desk.py', 'a run token'],
  ['openai-agents of Python', 'refund_desk.py', 'an agent key'],
] as const;

describe.skipIf(!HAS_CLIENTS)('an unmodified, pinned agent that refunds', () => {
  it.each(AGENT_PROGRAMS)(
    'gets the refund that a person reduced from 1,200 to 800 USD, with its receipt: %s (%s) with %s (AP-1, AP-3, AP-4, SV-5, SV-6)',
    async (_, program, credential) => {
      const refund = await startRefund(program, credential);
      const { model, test, exchanges, approval } = refund;
      const { approvalId, runId } = approval;
      await completesAt800(refund);
      // The first result that the model gets after the decision reports the reduced amount.
      const results = resultsIn(model.requests.at(-1) as ModelRequest);
      expect(results.at(-1)).toMatch(CAPPED);
      expect(results.filter((result) => CAPPED.test(result))).toHaveLength(1);
      const [meta, ...others] = metasIn(exchanges).filter((one) => 'io.writ/approval' in one);
      expect(others).toEqual([]);
      expect(meta).toMatchObject({
        'io.writ/run': runId,
        'io.writ/approval': approvalId,
        'io.writ/executed_from': 'human_revised',
      });
      const { id, claims } = await verifiedReceipt(test, String(meta?.['io.writ/receipt']));
      expect(claims).toMatchObject({ runId, callId: meta?.['io.writ/call'], tool: 'issue_refund' });
      // Model and tool calls belong to one run, whose audit chain has the receipt.
      const { runs } = await test.client.runs.listRuns({});
      expect(runs).toHaveLength(1);
      await test.client.runs.closeRun({ requestId: newId('req'), runId });
      expect(await stopReasonOf(test, runId)).toBe('closed');
      const { run } = await test.client.runs.getRun({ runId });
      expect(run?.result?.usage?.turns).toBe(BigInt(model.requests.length));
      await vi.waitFor(async () => {
        expect(JSON.stringify(await verifiedAudit(test))).toContain(`"receipt_id":"${id}"`);
      });
    },
  );

  it('gets the refund although it waits only five seconds, its default: openai-agents of Python (AP-4)', async () => {
    const refund = await startRefund('refund_desk.py', 'an agent key');
    const { model, test, approval } = refund;
    // The second result is not the refund: the client has abandoned its first call.
    await vi.waitFor(() =>
      expect(model.requests.some((request) => resultsIn(request).length > 1)).toBe(true),
    );
    await completesAt800(refund);
    const { approvals } = await test.client.approvals.listApprovals({ runId: approval.runId });
    expect(approvals).toHaveLength(1);
    await verifiedAudit(test);
  });
});
