import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { canonicalDigest } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { FakePeers } from '../../services/supervisor/test/fake-peers.ts';
import { SERVICE_MAINS } from '../load/program.ts';
import type { BenchOptions } from './bench.ts';
import { openBench } from './bench-setup.ts';
import { compare } from './compare.ts';
import type { Operation } from './measure.ts';

const REVIEW = 'ReviewAction';
const BASELINE = 'echo + commit';
/** Maximum p50 relative to the baseline. */
const MAX_RATIO = 2.5;
/** Number of runs that share the reviews, so that no run has more steps than a realistic long run. */
const RUNS = 400;
const STEPS = 30;
/** Age at which a slot grant is renewed, ms; it is valid for five seconds. */
const GRANT_MS = 3_000;
const RULES = 50;

const AGENTS = {
  agents: [
    {
      name: 'refunder',
      kind: 'json-action',
      instructions: 'Refund.',
      model: { model: 'refunder' },
      tools: ['issue_refund'],
      limits: { max_steps: 1_000_000, max_tool_calls: 1_000_000 },
    },
  ],
};

const REFUND_SCHEMA = {
  type: 'object',
  properties: {
    user_id: { type: 'integer' },
    amount_usd: { type: 'number' },
    reason: { type: 'string' },
  },
  required: ['user_id', 'amount_usd', 'reason'],
};

/** Fifty rules: half for other tools, half with a false condition, and one that approves. */
const POLICY = {
  policy: 'bench',
  limits: { per_run: { usd: 1_000_000 } },
  facts: {
    seen: {
      kind: 'gate',
      initial: false,
      updates: [{ tool: 'lookup', when: '!has(result.error)', set: true }],
    },
    refunded: {
      kind: 'cap',
      type: 'cents',
      initial: 0,
      updates: [{ tool: 'issue_refund', count: 'cents(args.amount_usd)' }],
    },
  },
  rules: [
    ...Array.from({ length: RULES - 1 }, (_, index) => ({
      id: `rule-${index}`,
      match: { tool: index % 2 === 0 ? 'issue_refund' : `other_${index}*` },
      when: `cents(args.amount_usd) > limits.per_run - facts.refunded - ${index} || args.user_id == -${index}.0`,
      decide: 'block',
      reason: 'too_much',
      risk: 50,
    })),
    { id: 'refund', match: { tool: 'issue_refund' }, decide: 'approve', reason: 'fine', risk: 10 },
  ],
};

/**
 * Measures ReviewAction with fifty rules, a durable decision and a signed writ, and compares it with one gRPC call that
 * commits once, in separate processes (SV-1, SV-3, SV-6). Prints the figures and returns whether the p50 of one review
 * at a time is at most {@link MAX_RATIO} times that of the baseline.
 */
export async function benchReview({ profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    const { dir, start } = await openBench(stack, profileDir);
    const echo = await start(fileURLToPath(new URL('echo-server.ts', import.meta.url)), {
      ECHO_FILE: join(dir, 'echo.db'),
    });
    const fakes = await FakePeers.start();
    stack.defer(() => fakes.close());
    const apiKey = await openApiKeys({ file: join(dir, API_KEYS_FILE) }).create({
      subject: 'bench',
      tenant: 'acme',
      roles: ['caller'],
    });
    const agentsFile = join(dir, 'agents.yaml');
    const policyFile = join(dir, 'policy.yaml');
    await writeFile(agentsFile, JSON.stringify(AGENTS));
    await writeFile(policyFile, JSON.stringify(POLICY));
    const { address, edgeAddress } = await start(SERVICE_MAINS.supervisor, {
      WRIT_DATA: dir,
      WRIT_SUPERVISOR_PORT: '0',
      WRIT_EDGE_PORT: '0',
      WRIT_AGENTS_FILE: agentsFile,
      WRIT_POLICY_FILE: policyFile,
      WRIT_SPAWN_BUDGET_ADDRESS: fakes.addressOf('spawn-budget'),
      WRIT_EXECUTION_METER_ADDRESS: fakes.addressOf('execution-meter'),
      WRIT_TOOL_GATEWAY_ADDRESS: fakes.addressOf('tool-gateway'),
      WRIT_AGENT_WORKER_ADDRESS: fakes.addressOf('agent-worker'),
      WRIT_LOG_LEVEL: 'error',
    });
    const telemetry = createTelemetry({ service: 'bench', logLevel: 'silent' });
    const baseline = createRpcClient(KeyService, { address: echo.address, telemetry });
    stack.defer(() => baseline.close());
    const runs = createRpcClient(RunService, {
      address: edgeAddress,
      telemetry,
      serviceToken: async () => apiKey,
    });
    stack.defer(() => runs.close());
    await startRuns(runs, fakes);
    const results = await compare({
      echo: () => baseline.getKeys({}),
      [BASELINE]: () => baseline.getKeys({ keyId: 'commit' }),
      [REVIEW]: await prepare(fakes, address),
    });
    return verdict(results.p50Ratio(REVIEW, BASELINE, 1), results.p50Ratio(REVIEW, BASELINE, 64));
  } finally {
    await stack.disposeAsync();
  }
}

async function startRuns(
  runs: { startRun(request: { requestId: string; agent: string; goal: string }): Promise<unknown> },
  fakes: FakePeers,
): Promise<void> {
  const tools = [
    {
      name: 'issue_refund',
      inputSchemaJson: JSON.stringify(REFUND_SCHEMA),
      risk: 0.3,
      definitionDigest: canonicalDigest({ name: 'issue_refund' }),
    },
  ];
  fakes.answer(ToolGatewayService.method.listTools, ({ knownVersion }) =>
    knownVersion === 'v1'
      ? { registryVersion: 'v1', unchanged: true, emitsHookEvents: true }
      : { registryVersion: 'v1', tools, emitsHookEvents: true },
  );
  for (let run = 0; run < RUNS; run += 1) {
    await runs.startRun({ requestId: `start-${run}`, agent: 'refunder', goal: 'Refund it.' });
  }
  await fakes.called(AgentWorkerService.method.deliver, RUNS);
}

/** Returns the operation in which the next run's agent proposes a refund and receives its writ. */
async function prepare(fakes: FakePeers, address: string): Promise<Operation> {
  const spawnBudget = fakes.peer('spawn-budget');
  const agents = fakes.deliveries.map(({ tenant, supervision, agent, credentials }) => {
    const { runId = '' } = supervision ?? {};
    const holder = { tenant, runId, agentInstance: agent?.instance ?? '', epoch: 1n };
    const agentToken = credentials?.supervisorToken ?? '';
    let grantedAt = 0;
    let slotGrant: Promise<string> | undefined;
    return async () => {
      if (slotGrant === undefined || performance.now() - grantedAt > GRANT_MS) {
        grantedAt = performance.now();
        slotGrant = spawnBudget.slotGrant(holder);
      }
      return { agentToken, slotGrant: await slotGrant, epoch: 1n };
    };
  });
  const worker = fakes.peer('agent-worker');
  const reviews = worker.client(ReviewService, { audience: 'supervisor', address });
  const args = { user_id: 42, amount_usd: 1.5, reason: 'It arrived broken.' };
  const value = JSON.stringify({ kind: 'tool', name: 'issue_refund', args });
  return async (n) => {
    const { decision } = await reviews.reviewAction(
      { callId: `op-${n}`, proposal: { case: 'rawText', value } },
      await agents[Math.floor(n / STEPS) % agents.length]?.(),
    );
    if (!decision?.writ) throw new Error(`A review ended with ${decision?.reason}.`);
  };
}

function verdict(alone: number, crowded: number): boolean {
  const isEnough = alone <= MAX_RATIO;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: ${REVIEW} takes ${alone.toFixed(2)} times the p50 of ${BASELINE} (maximum ${MAX_RATIO}), and ${crowded.toFixed(2)} times at 64 in flight.`,
  );
  return isEnough;
}
