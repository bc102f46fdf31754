import { type AgentKey, agentKeyText, type Clock, PreconditionError } from '@writ/kernel';
import { type AgentCredentials, areFresh } from '../../domain/credentials.ts';
import type { ProxyPeers } from '../../peers/peers.ts';
import { type AgentRow, findAgent, keyOf, saveAgent } from '../../store/agents.ts';
import type { ProxyStore, ProxyTransaction } from '../../store/proxy-store.ts';

/** The tokens of external agents, renewed before they expire; replicas share them through the store. */
export class AgentTokens {
  readonly #store: ProxyStore;
  readonly #peers: Pick<ProxyPeers, 'refreshTokens'>;
  readonly #clock: Clock;
  readonly #renewals = new Map<string, Promise<AgentCredentials>>();

  constructor(store: ProxyStore, peers: Pick<ProxyPeers, 'refreshTokens'>, clock: Clock) {
    this.#store = store;
    this.#peers = peers;
    this.#clock = clock;
  }

  /**
   * Returns tokens that are not about to expire.
   * @param isRefused whether a service has refused the current tokens; if so, they are renewed
   * @throws PreconditionError RUN_ENDED; what RefreshTokens throws
   */
  async of(agent: AgentKey, isRefused = false): Promise<AgentCredentials> {
    return await this.#fresh(agent, await findAgent(this.#store.db, agent), isRefused);
  }

  /**
   * Like `of`, for an agent whose row has just been read.
   * @throws PreconditionError RUN_ENDED; what RefreshTokens throws
   */
  async ofRow(row: AgentRow): Promise<AgentCredentials> {
    return await this.#fresh(keyOf(row), row, false);
  }

  async #fresh(
    agent: AgentKey,
    row: AgentRow | undefined,
    isRefused: boolean,
  ): Promise<AgentCredentials> {
    const text = row?.credentials ?? null;
    if (text === null) throw ended(agent);
    const known = JSON.parse(text) as AgentCredentials;
    if (!isRefused && areFresh(known, this.#clock.now().getTime())) return known;
    const key = agentKeyText(agent);
    const renewal = this.#renewals.get(key) ?? this.#renew(agent, known);
    this.#renewals.set(key, renewal);
    return await renewal.finally(() => this.#renewals.delete(key));
  }

  async #renew(agent: AgentKey, { supervisor }: AgentCredentials): Promise<AgentCredentials> {
    const fresh = await this.#peers.refreshTokens(supervisor);
    const save = async (trx: ProxyTransaction): Promise<void> => {
      const row = await findAgent(trx, agent);
      if (row === undefined || row.ended_at !== null) throw ended(agent);
      await saveAgent(trx, agent, { credentials: JSON.stringify(fresh) });
    };
    await this.#store.transaction(save, { run: agent });
    return fresh;
  }
}

function ended({ runId, instance }: AgentKey): PreconditionError {
  return new PreconditionError('RUN_ENDED', `Agent ${instance} of run ${runId} has ended.`, {
    run_id: runId,
    agent: instance,
  });
}
