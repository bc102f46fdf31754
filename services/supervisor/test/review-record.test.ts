import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createInProcessBus } from '@writ/bus';
import {
  ReviewActionRequestSchema,
  ReviewService,
} from '@writ/contracts/writ/review/v1/review_service_pb';
import { createVerifier, openSigner, trustSigners } from '@writ/identity';
import {
  compileContract,
  type JsonObject,
  newTraceparent,
  Priority,
  systemClock,
} from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ChainGuard } from '../src/app/audit/chain-guard.ts';
import { loadAgents } from '../src/app/definitions/agents-file.ts';
import { openPolicy } from '../src/app/definitions/policy-file.ts';
import { readCarriedReceipts } from '../src/app/review/carried-receipts.ts';
import { findProposedTool, reviewProposal } from '../src/app/review/review-proposal.ts';
import { recordRun } from '../src/app/run/start-run.ts';
import { HeldEvents } from '../src/app/timeline/held-events.ts';
import { SUPERVISOR_DEFAULTS } from '../src/config.ts';
import { type SupervisorContext, transact } from '../src/context.ts';
import { StartQueue } from '../src/domain/admission/start-queue.ts';
import { planRun } from '../src/domain/run/plan-run.ts';
import { createSupervisorEvents } from '../src/events.ts';
import type { ToolGatewayPeer } from '../src/peers/tool-gateway.ts';
import { keyOf, saveAgent } from '../src/store/agent/agents.ts';
import { insertHalt, newHalt } from '../src/store/halt/halts.ts';
import { openSupervisorStore } from '../src/store/supervisor-store.ts';
import type { DecisionMessage } from '../src/wire/decision.ts';
import { proposalFrom } from '../src/wire/proposal.ts';
import { finalText, LOOK_UP, type Proposal, refund } from './refund-harness.ts';
import { exampleFile, refundTools } from './refund-tools.ts';

const RUN = { tenant: 'acme', runId: 'run-1', sessionId: 'session-1' };
const TABLES = ['decisions', 'approvals', 'facts', 'timeline', 'audit', 'outbox'] as const;

describe('the records of a review', () => {
  const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
  let dataDir: string;
  let context: SupervisorContext;
  let agent: { readonly name: string; readonly instance: string };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'writ-review-'));
    context = await contextIn(dataDir);
    const manifest = context.agents.get('refund-worker');
    if (manifest === undefined) throw new Error('The agent does not exist.');
    const now = new Date();
    const plan = planRun(
      manifest,
      {
        goal: 'Refund it.',
        dataJson: '',
        runBudget: {},
        sessionBudget: undefined,
        spawnBudget: manifest.spawnBudget,
        priority: undefined,
        retention: undefined,
        model: '',
      },
      RUN.runId,
      now,
    );
    agent = { name: manifest.name, instance: plan.rootInstance };
    const given = {
      ...RUN,
      requestId: 'req-1',
      requestDigest: '',
      createdBy: 'anna',
      goal: 'Refund it.',
      dataJson: '',
      labels: {},
      traceparent: newTraceparent(),
      definitions: [],
    };
    await context.store.transaction((trx) => recordRun(trx, plan, given, now));
  });
  afterEach(async () => {
    await context.store.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const contextIn = async (folder: string): Promise<SupervisorContext> => {
    const signer = await openSigner({ service: 'supervisor', keyDir: folder, clock: systemClock });
    const tools = new Map(
      refundTools().map(({ name = '', inputSchemaJson = '', definitionDigest = '' }) => {
        const contract = compileContract(JSON.parse(inputSchemaJson) as JsonObject);
        return [name, { name, definitionDigest, contract, risk: 0 }];
      }),
    );
    const toolGateway = { tool: async (name: string) => tools.get(name) } as ToolGatewayPeer;
    const store = await openSupervisorStore(
      { dialect: 'sqlite', file: ':memory:' },
      () => undefined,
    );
    const verifier = createVerifier({ trust: trustSigners(signer), clock: systemClock });
    return {
      config: {
        ...SUPERVISOR_DEFAULTS,
        port: 0,
        edge: { host: '127.0.0.1', port: 0 },
        dataDir: folder,
        store: { dialect: 'sqlite', file: ':memory:' },
        agents: exampleFile('agents.yaml'),
        policy: exampleFile('policy.yaml'),
      },
      store,
      bus: createInProcessBus({ onError: () => undefined }),
      clock: systemClock,
      telemetry,
      signer,
      verifier,
      apiKeys: { verify: () => undefined },
      peers: { toolGateway } as SupervisorContext['peers'],
      events: createSupervisorEvents(telemetry),
      notify: async () => undefined,
      notifications: { consoleUrl: '', allowance: { hosts: [], ports: [] }, endpoints: new Map() },
      heldEvents: new HeldEvents(),
      chainGuard: new ChainGuard({ store, verifier, log: telemetry.log }),
      starts: new StartQueue(SUPERVISOR_DEFAULTS),
      agents: loadAgents(exampleFile('agents.yaml')).agents,
      policy: (await openPolicy(exampleFile('policy.yaml'), telemetry.log)).current,
    };
  };

  const propose = async (callId: string, proposal: Proposal): Promise<DecisionMessage> => {
    const identity = { ...RUN, agent, depth: 0, priority: Priority.NORMAL, models: [], tools: [] };
    const { tenant, runId } = RUN;
    const agentInstance = agent.instance;
    const grant = { tenant, runId, agentInstance, priority: Priority.NORMAL, epoch: 1n };
    const call: CallContext = {
      method: ReviewService.method.reviewAction,
      signal: new AbortController().signal,
      remainingMs: Infinity,
      header: () => undefined,
      caller: { agent: identity, epoch: 1n, slotGrant: { ...grant, expireTime: new Date() } },
      log: telemetry.log,
      traceparent: newTraceparent(),
    };
    const request = create(ReviewActionRequestSchema, { ...proposal, callId });
    const review = {
      call,
      proposal: proposalFrom(request),
      findTool: await findProposedTool(context.peers.toolGateway, proposalFrom(request)),
      recordCarried: await readCarriedReceipts(
        context,
        { ...RUN, instance: agent.instance },
        request,
      ),
      startedAt: performance.now(),
    };
    return await transact(context, (tx) => reviewProposal(tx, review), { run: RUN });
  };

  /** The number of rows in each table that a review writes. */
  const counts = async (): Promise<Record<string, number>> => {
    const counted: Record<string, number> = {};
    for (const table of TABLES) {
      const rows = context.store.db.selectFrom(table as 'audit');
      const { count } = await rows
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      counted[table] = count;
    }
    return counted;
  };

  it.each([
    ['an approval', refund(250), { decisions: 1, facts: 1, timeline: 1, audit: 1 }],
    ['a block', finalText('Done.'), { decisions: 1, timeline: 1, audit: 1 }],
    [
      'an escalation',
      refund(1200),
      // The timeline gets the decision and the event; the outbox gets the event.
      { decisions: 1, approvals: 1, timeline: 2, audit: 2, outbox: 1 },
    ],
  ])('are written in one commit for %s (SV-1)', async (_what, proposal, expected) => {
    const before = await counts();
    const commits = context.store.commits;
    await propose('op-1', proposal);
    expect(context.store.commits - commits).toBe(1);
    const after = await counts();
    const added = TABLES.map((table) => [table, (after[table] ?? 0) - (before[table] ?? 0)]);
    expect(Object.fromEntries(added.filter(([, count]) => count !== 0))).toEqual(expected);
  });

  it('are not written when the writ cannot be signed (SYS-4)', async () => {
    const before = await counts();
    const signer = {
      ...context.signer,
      sign: async () => {
        throw new Error('The key is unavailable.');
      },
    };
    context = { ...context, signer };
    await expect(propose('op-1', refund(250))).rejects.toThrow('The key is unavailable.');
    expect(await counts()).toEqual(before);
  });

  it('contain the facts before and after, rule, risk, digests, writ and latency (SV-3, SV-6)', async () => {
    const decision = await propose('op-1', refund(250, null));
    const row = await context.store.db
      .selectFrom('decisions')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({
      verdict: 'revise',
      rule_id: 'refund-reason',
      risk: 0.3,
      policy_version: context.policy.version,
      executed_from: 'supervisor_revised',
      definition_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      args_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      writ_count: 1,
      last_writ_id: expect.stringMatching(/^writ_/),
      sequence: 1,
    });
    expect(row.latency_us).toBeGreaterThan(0);
    expect(JSON.parse(row.facts_before ?? '')).toMatchObject({ executed_refund_total: 0 });
    expect(JSON.parse(row.facts_after ?? '')).toMatchObject({ executed_refund_total: 25_000 });
    await propose('op-1', refund(250, null));
    const updated = await context.store.db
      .selectFrom('decisions')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(updated.writ_count).toBe(2);
    expect(updated.last_writ_id).not.toBe(row.last_writ_id);
    expect(decision?.writ).not.toBe('');
  });

  it('contain ids and digests but no content in the audit log (SV-8)', async () => {
    await propose('op-1', refund(250));
    await propose('op-2', finalText('A secret answer.'));
    const records = await context.store.db
      .selectFrom('audit')
      .selectAll()
      .where('kind', '=', 'decision')
      .orderBy('position')
      .execute();
    const [first, second] = records.map((row) => JSON.parse(row.canonical_json));
    expect(first).toMatchObject({
      tenant: 'acme',
      run_id: 'run-1',
      agent_instance: agent.instance,
      call_id: 'op-1',
      verdict: 'approve',
      rule: 'refund',
      policy_version: context.policy.version,
      action_name: 'issue_refund',
      executed_from: 'original',
      writ_id: expect.stringMatching(/^writ_/),
      passes: [{ verdict: 'approve', rule: 'refund', reason: 'refund_within_auto_limit' }],
    });
    expect(second).toMatchObject({ stop_reason: 'supervisor_block:final_requires_context' });
    expect(JSON.stringify(records)).not.toMatch(/secret|Paid twice/);
    expect(records.map(({ sequence, hash }) => [sequence, hash])).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  it('are not written for a halted run (SV-9)', async () => {
    await propose('op-1', LOOK_UP);
    const before = await counts();
    await context.store.transaction((trx) =>
      insertHalt(
        trx,
        newHalt({
          haltId: 'hlt-1',
          scope: { tenant: 'acme' },
          reason: 'Too many refunds.',
          endRuns: false,
          orderedBy: 'anna',
          orderedFor: 'acme',
          at: new Date(),
        }),
      ),
    );
    await expect(propose('op-2', LOOK_UP)).rejects.toMatchObject({ reason: 'HALTED' });
    await expect(propose('op-1', LOOK_UP)).rejects.toMatchObject({ reason: 'HALTED' });
    expect(await counts()).toEqual(before);
  });

  it('omit the action of a proposal beyond a limit (EM-1)', async () => {
    await propose('op-1', LOOK_UP);
    const { store } = context;
    const [agent] = await store.db.selectFrom('agents').selectAll().execute();
    if (agent === undefined) throw new Error('There is no agent.');
    await store.transaction((trx) => saveAgent(trx, keyOf(agent), { steps: 8 }));
    expect((await propose('op-2', LOOK_UP))?.stopReason).toBe('max_steps');
    const row = await store.db
      .selectFrom('decisions')
      .selectAll()
      .where('call_id', '=', 'op-2')
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ action: null, raw_text: null, step: 9, phase: null });
  });
});
