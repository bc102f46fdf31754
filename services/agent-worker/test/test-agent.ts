import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { AgentContext } from '../src/runtime/agent.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { InterceptedStore, type Interception } from './intercepted-store.ts';
import { approveAll } from './team.ts';
import { World, type WorldOptions } from './world.ts';

/** The manifest of an agent whose code is in the test. */
export const CUSTOM = { kind: AgentKind.CUSTOM } as const;

/** Settings of a worker that a test abandons: it runs one agent at a time, and its lease outlasts the test. */
export const FROZEN = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 } as const;

/** The code of an agent. */
export type Work = (ctx: AgentContext) => Promise<void>;

/** Starts a world whose supervisor approves every action, and a worker whose agents run `work`. */
export async function startWith(
  work: Work,
  options: WorldOptions = {},
  settings = {},
  hooks: Interception = {},
): Promise<World> {
  const world = await World.start(options);
  world.supervisor.rule = approveAll;
  await startAgain(world, work, settings, hooks);
  return world;
}

/** Starts another worker whose agents run `work`, with hooks around its transactions. */
export async function startAgain(
  world: World,
  work: Work,
  settings = {},
  hooks: Interception = {},
) {
  const custom = (_: unknown, instance: string) => ({ id: instance, kind: 'custom', run: work });
  return await world.startWorker(settings, {
    agents: { custom },
    openStore: async (location) => new InterceptedStore(await openWorkerStore(location), hooks),
  });
}

/** Sends a signal to the root agent of a run; its default payload contains the id of the request. */
export function signal(
  world: World,
  requestId: string,
  {
    name = 'new_source_item',
    payload = { of: requestId },
    runId = RUN,
  }: { readonly name?: string; readonly payload?: object; readonly runId?: string } = {},
) {
  const to = { tenant: TENANT, runId, agentInstance: AGENT.instance };
  return world.worker.signal({ ...to, requestId, name, payloadJson: JSON.stringify(payload) });
}

/** A request to the model with one text. */
export function llmRequest(text: string) {
  const messages = [{ role: 'user', text }] as const;
  return { model: 'small', messages, json: false, requireContent: false };
}
