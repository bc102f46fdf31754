import { join } from 'node:path';
import { create, type DescService } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ChatRole } from '@writ/contracts/writ/model/v1/model_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  RenewIntent,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  AgentState,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  mintAgentCredentials,
  openSigner,
  type ServiceName,
  type Signer,
  serviceTokens,
} from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { type ClosableRpcClient, createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

/**
 * The agents of a run. The test creates the run without the supervisor, with the keys of the supervisor and of a
 * worker.
 */
const ROOT = { name: 'lead', instance: 'lead-1' } as const;
const CHILD = { name: 'helper', instance: 'helper-1' } as const;
const OTHER = { name: 'helper', instance: 'helper-2' } as const;
const MODEL = 'sim-auto-1000';
/** The prompt that the script answers with its first action. */
const PROMPT = '{"state_summary":{"steps_completed":0}}';

let test: TestPlatform;
const clients: { close(): void }[] = [];

beforeAll(async () => {
  test = await startTestPlatform({ env: { WRIT_SLOT_GRANT_TTL: '500ms' } });
});
afterAll(async () => {
  for (const client of clients) client.close();
  await test.close();
});

function signerOf(service: ServiceName): Promise<Signer> {
  return openSigner({ service, keyDir: join(test.dataDir, 'keys'), clock: systemClock });
}

/** A client of `service` that authenticates as `caller`. */
async function clientOf<S extends DescService>(
  service: S,
  caller: ServiceName,
  audience: ServiceName,
): Promise<ClosableRpcClient<S>> {
  const client = createRpcClient(service, {
    address: test.platform.addresses[audience],
    telemetry: createTelemetry({ service: caller, logLevel: 'silent' }),
    serviceToken: serviceTokens(await signerOf(caller), { audience, replica: 'test' }),
  });
  clients.push(client);
  return client;
}

/**
 * Creates a run whose two slots are held by the root and a LOW child. Returns the run, the credentials of the child,
 * and functions that preempt the child and release the slot of the preempting agent.
 */
async function startRun(runId: string) {
  const run = { tenant: 'default', runId } as const;
  const slots = await clientOf(SpawnBudgetService, 'supervisor', 'spawn-budget');
  const tabs = await clientOf(ExecutionMeterService, 'supervisor', 'execution-meter');
  await slots.openPool({ ...run, requestId: 'open', root: ROOT, budget: { maxAgents: 2 } });
  const acquire = (agent: typeof CHILD | typeof OTHER, priority: Priority) =>
    slots.acquire({
      ...run,
      requestId: `acquire-${agent.instance}`,
      agent,
      parent: ROOT,
      depth: 1,
      priority,
    });
  await acquire(CHILD, Priority.LOW);
  await tabs.openTab({
    ...run,
    requestId: 'tab',
    sessionId: 'session-1',
    agent: CHILD,
    budget: {},
    models: [MODEL],
  });
  const minted = await mintAgentCredentials(await signerOf('supervisor'), {
    ...run,
    sessionId: 'session-1',
    agent: CHILD,
    parent: ROOT,
    depth: 1,
    priority: Priority.LOW,
    models: [MODEL],
    tools: [],
  });
  return {
    run,
    credentials: create(AgentCredentialsSchema, minted),
    /** Acquires a slot for a second child with a higher priority, which pauses the LOW child. */
    preempt: () => acquire(OTHER, Priority.HIGH),
    release: () => slots.release({ ...run, requestId: 'release', agentInstance: OTHER.instance }),
  };
}

it('parks an agent whose slot was preempted and resumes it when the slot is free (SB-2, SB-4, AG-7)', async () => {
  const { run, credentials, preempt, release } = await startRun('run-parked');
  const { changes } = await preempt();
  expect(changes).toMatchObject([{ agent: CHILD, to: SlotState.PAUSED, becauseOf: OTHER }]);
  const worker = await clientOf(AgentWorkerService, 'supervisor', 'agent-worker');
  await worker.deliver({
    requestId: 'deliver',
    tenant: run.tenant,
    agent: CHILD,
    supervision: {
      runId: run.runId,
      sessionId: 'session-1',
      root: ROOT,
      parent: ROOT,
      depth: 1,
      spawnBudget: {},
      executionBudget: {},
    },
    manifest: {
      name: CHILD.name,
      definitionHash: 'hash',
      kind: AgentKind.JSON_ACTION,
      model: { model: MODEL, jsonMode: true },
    },
    credentials,
    message: { messageId: 'task', text: 'Help.' },
  });
  const child = async () => (await worker.describeRun(run)).agents[0];
  await vi.waitFor(async () =>
    expect(await child()).toMatchObject({ state: AgentState.PARKED, waitingFor: ['slot'] }),
  );
  expect(test.modelRequests()).toEqual([]);
  expect((await release()).changes).toMatchObject([{ agent: CHILD, to: SlotState.ACTIVE }]);
  await vi.waitFor(() => expect(test.modelRequests()).toHaveLength(1));
  expect((await child())?.epoch).toBe(2n);
});

it('rejects a worker that continues after a pause, at every boundary, within the lifetime of a grant (SB-4, RT-2)', async () => {
  const { credentials, preempt } = await startRun('run-liar');
  const slots = await clientOf(SpawnBudgetService, 'agent-worker', 'spawn-budget');
  const models = await clientOf(ModelService, 'agent-worker', 'execution-meter');
  const reviews = await clientOf(ReviewService, 'agent-worker', 'supervisor');
  const renew = async (epoch: bigint) => {
    const renewal = { agentToken: credentials.spawnBudgetToken, epoch, intent: RenewIntent.RUN };
    return (await slots.renew({ agents: [renewal] })).agents[0];
  };
  const slotGrant = (await renew(3n))?.slot?.grant ?? '';
  const asAgent = (agentToken: string, grant = slotGrant) => ({
    agentToken,
    epoch: 3n,
    ...(grant !== '' && { slotGrant: grant }),
  });
  const generate = async (grant?: string) => {
    const messages = [
      { role: ChatRole.USER, parts: [{ kind: { case: 'text' as const, value: PROMPT } }] },
    ];
    const request = { callId: 'op-1', model: MODEL, messages };
    const options = asAgent(credentials.executionMeterToken, grant);
    return await Array.fromAsync(models.generate(request, options));
  };
  await generate();
  await preempt();
  const paused = await renew(3n);
  expect(paused?.slot).toMatchObject({ state: SlotState.PAUSED, grant: '' });
  expect((await renew(2n))?.refusal).toBe('STALE_EPOCH');
  await vi.waitFor(() =>
    expect(generate()).rejects.toMatchObject({ reason: 'SLOT_GRANT_EXPIRED' }),
  );
  await expect(generate('')).rejects.toMatchObject({ reason: 'SLOT_GRANT_REQUIRED' });
  const options = asAgent(credentials.supervisorToken);
  const proposal = { case: 'rawText', value: '{"kind":"final","answer":"Done."}' } as const;
  const refused = { reason: 'SLOT_GRANT_EXPIRED' };
  await expect(reviews.reviewAction({ callId: 'op-2', proposal }, options)).rejects.toMatchObject(
    refused,
  );
  await expect(reviews.getDecision({ callId: 'op-2' }, options)).rejects.toMatchObject(refused);
});
