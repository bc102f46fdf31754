import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { mintAgentCredentials, mintSlotGrant, openSigner, type Signer } from '@writ/identity';
import { newId, systemClock } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';

/** The signers of the tokens in a step. */
export interface BaselineSigners {
  readonly supervisor: Signer;
  readonly spawnBudget: Signer;
  readonly gateway: Signer;
  readonly worker: Signer;
}

/** The identity of an agent that counts. */
export interface Counter {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: { readonly name: string; readonly instance: string };
}

/** The call options of a worker for each service. */
export interface AgentCallOptions {
  readonly toMeter: CallOptions;
  readonly toSupervisor: CallOptions;
  /** Without agent token and slot grant: the writ is sufficient. */
  readonly toGateway: CallOptions;
}

/** Longer than any benchmark, so that no token is renewed. */
const TTL_MS = 3_600_000;
/** The deadline that the worker sets. */
const CALL_MS = 10_000;
const EPOCH = 1n;

/** Creates signing keys in `folder`. */
export async function openBaselineSigners(folder: string): Promise<BaselineSigners> {
  const open = (service: Signer['service']) =>
    openSigner({ service, keyDir: folder, clock: systemClock });
  return {
    supervisor: await open('supervisor'),
    spawnBudget: await open('spawn-budget'),
    gateway: await open('tool-gateway'),
    worker: await open('agent-worker'),
  };
}

/** Creates an agent that counts to `limit`, with a name and ids of realistic length. */
export function createCounter(limit: number): Counter {
  const name = `counter-${limit}`;
  const agent = { name, instance: `${name}-1model` };
  return { tenant: 'default', runId: newId('run'), sessionId: newId('ses'), agent };
}

/** Mints the tokens and the slot grant of an agent, which every call sends. */
export async function createCallOptions(
  { supervisor, spawnBudget }: BaselineSigners,
  { tenant, runId, sessionId, agent }: Counter,
): Promise<AgentCallOptions> {
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
