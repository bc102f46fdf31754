import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { mintAgentCredentials, mintSlotGrant, openSigner, type Signer } from '@writ/identity';
import { newId, systemClock } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';

/** Who signs what a step shows. */
export interface FloorSigners {
  readonly supervisor: Signer;
  readonly spawnBudget: Signer;
  readonly gateway: Signer;
  readonly worker: Signer;
}

/** An agent that counts, as its tokens name it. */
export interface Counter {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: { readonly name: string; readonly instance: string };
}

/** What a worker shows with an agent's calls. */
export interface Shown {
  readonly toMeter: CallOptions;
  readonly toSupervisor: CallOptions;
  /** Without token and grant: the writ says it all. */
  readonly toGateway: CallOptions;
}

/** Longer than any bench, so that nothing has to be renewed. */
const TTL_MS = 3_600_000;
/** As the worker sets it. */
const CALL_MS = 10_000;
const EPOCH = 1n;

/** Opens keys of the floor's own in `folder`. */
export async function openFloorSigners(folder: string): Promise<FloorSigners> {
  const open = (service: Signer['service']) =>
    openSigner({ service, keyDir: folder, clock: systemClock });
  return {
    supervisor: await open('supervisor'),
    spawnBudget: await open('spawn-budget'),
    gateway: await open('tool-gateway'),
    worker: await open('agent-worker'),
  };
}

/** An agent that counts to `limit`, with a name and ids as long as a real one's. */
export function createCounter(limit: number): Counter {
  const name = `counter-${limit}`;
  const agent = { name, instance: `${name}-1floor` };
  return { tenant: 'default', runId: newId('run'), sessionId: newId('ses'), agent };
}

/** Mints an agent's tokens and its slot grant, which are shown as they are with every call. */
export async function createShown(
  { supervisor, spawnBudget }: FloorSigners,
  { tenant, runId, sessionId, agent }: Counter,
): Promise<Shown> {
  const priority = Priority.NORMAL;
  const { supervisorToken, executionMeterToken } = await mintAgentCredentials(
    supervisor,
    { tenant, runId, sessionId, agent, priority, models: ['counting'], tools: ['count'] },
    TTL_MS,
  );
  const holder = { tenant, runId, agentInstance: agent.instance, priority, epoch: EPOCH };
  const { token: slotGrant } = await mintSlotGrant(spawnBudget, holder, TTL_MS);
  const { signal } = new AbortController();
  const options = { signal, timeoutMs: CALL_MS, epoch: EPOCH };
  return {
    toMeter: { ...options, slotGrant, agentToken: executionMeterToken },
    toSupervisor: { ...options, slotGrant, agentToken: supervisorToken },
    toGateway: options,
  };
}
