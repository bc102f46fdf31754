import {
  type AgentKey,
  derivedId,
  isWritError,
  OverloadedError,
  PermissionDeniedError,
  sha256Hex,
  UnavailableError,
} from '@writ/kernel';
import type { NamedSubAgent } from '../../domain/sub-agent.ts';
import { EPOCH, type ProxyPeers } from '../../peers/peers.ts';
import type { SpawnAnswer, SubAgentSpawn } from '../../peers/sub-agent-peers.ts';
import { type AgentRow, findAgent, keyOf, latestNamed } from '../../store/agents.ts';
import type { ProxyStore } from '../../store/proxy-store.ts';
import { agentEnded } from '../agent/agent-ended.ts';
import type { AgentTokens } from '../agent/agent-tokens.ts';
import type { Slots } from '../agent/slots.ts';

/** Dependencies of {@link SubAgents}. */
export interface SubAgentsParts {
  readonly store: ProxyStore;
  readonly peers: Pick<ProxyPeers, 'spawnChild'>;
  readonly tokens: AgentTokens;
  readonly slots: Slots;
}

/**
 * The sub-agents that clients name: each is a reviewed child with its own tab and slot (AP-6). The parent is the
 * sub-agent that the request names as the parent, or the main agent if that sub-agent is unknown or has ended because
 * it was idle. The ids are not verified: requests without ids are charged to the main agent, and the caps of the run
 * apply in either case.
 */
export class SubAgents {
  readonly #parts: SubAgentsParts;
  readonly #spawns = new Map<string, Promise<AgentRow>>();

  constructor(parts: SubAgentsParts) {
    this.#parts = parts;
  }

  /**
   * Returns the row of a named sub-agent, which is spawned if necessary. Returns the row of the parent when its
   * manifest has no `sub_agents`.
   * @param task reads the task for the review
   * @throws PreconditionError RUN_ENDED; PermissionDeniedError SUB_AGENT_REFUSED; OverloadedError SUB_AGENT_LIMIT;
   *   UnavailableError SUB_AGENT_PENDING, AGENT_NOT_DELIVERED; what SpawnChild, the slots and the tokens throw
   */
  async of(root: AgentRow, named: NamedSubAgent, task: () => Promise<string>): Promise<AgentRow> {
    const { store } = this.#parts;
    const latest = async (id: string) => await latestNamed(store.db, keyOf(root), sha256Hex(id));
    const known = await latest(named.id);
    if (known?.ended_at === null) return known;
    assertReplaceable(known);
    const namedParent = named.parent === '' ? undefined : await latest(named.parent);
    assertReplaceable(namedParent);
    const parent = namedParent?.ended_at === null ? namedParent : root;
    if (parent.child_name === '') return parent;
    const clientId = sha256Hex(named.id);
    // The id includes the instance that ended idle, so that the next spawn is a new call and not a repeat.
    const callId = derivedId('call', parent.instance, clientId, known?.instance ?? '');
    const running = this.#spawns.get(callId);
    if (running !== undefined) return await running;
    const spawn = this.#spawn(parent, clientId, callId, task);
    this.#spawns.set(callId, spawn);
    return await spawn.finally(() => this.#spawns.delete(callId));
  }

  async #spawn(
    parent: AgentRow,
    clientId: string,
    callId: string,
    task: () => Promise<string>,
  ): Promise<AgentRow> {
    const { child_name: agent } = parent;
    const text = (await task()) || 'A sub-agent of an external agent.';
    const parentKey = keyOf(parent);
    const spawn = { callId, agent, task: text, clientId };
    const answer = await this.#requestSpawn(parentKey, spawn).finally(() =>
      this.#parts.slots.released(parentKey),
    );
    if (answer.kind !== 'spawned') throw refusalOf(answer, parent);
    const key = { ...parentKey, instance: answer.instance };
    const row = await findAgent(this.#parts.store.db, key);
    if (row?.ended_at === null) return row;
    assertReplaceable(row);
    throw notDelivered(parent.run_id);
  }

  async #requestSpawn(parent: AgentKey, spawn: SubAgentSpawn): Promise<SpawnAnswer> {
    const { peers, slots, tokens } = this.#parts;
    for (let isFirst = true; ; isFirst = false) {
      const slotGrant = await slots.grant(parent);
      const { supervisor: agentToken } = await tokens.of(parent, !isFirst);
      try {
        return await peers.spawnChild(spawn, { agentToken, slotGrant, epoch: EPOCH });
      } catch (error) {
        if (!isWritError(error)) throw error;
        if (!isFirst || !/^TOKEN_(EXPIRED|INVALID)$/.test(error.reason)) throw error;
      }
    }
  }
}

/**
 * Throws RUN_ENDED for an agent that ended for a reason other than `idle`. An agent that ended idle is replaced by a
 * new one at its next request.
 */
function assertReplaceable(agent: AgentRow | undefined): void {
  if (agent === undefined || agent.ended_at === null || agent.stop_reason === 'idle') return;
  throw agentEnded(keyOf(agent), agent.stop_reason ?? 'ended');
}

function refusalOf(
  answer: Exclude<SpawnAnswer, { readonly kind: 'spawned' }>,
  { run_id: runId, child_name: name }: AgentRow,
): Error {
  const ids = { run_id: runId, agent: name };
  switch (answer.kind) {
    case 'starting':
      return notDelivered(runId);
    case 'pending':
      return new UnavailableError(
        'SUB_AGENT_PENDING',
        `A sub-agent ${name} of run ${runId} waits for an approval; retry.`,
        { ...ids, retry_after_ms: '5000' },
      );
    case 'limited':
      return new OverloadedError('SUB_AGENT_LIMIT', answer.reason, ids);
    case 'refused':
      return new PermissionDeniedError(
        'SUB_AGENT_REFUSED',
        `A sub-agent ${name} of run ${runId} was rejected: ${answer.reason}.`,
        { ...ids, stop_reason: answer.reason },
      );
  }
}

function notDelivered(runId: string): UnavailableError {
  return new UnavailableError(
    'AGENT_NOT_DELIVERED',
    `A sub-agent of run ${runId} has not been delivered yet; retry.`,
    { run_id: runId, retry_after_ms: '1000' },
  );
}
