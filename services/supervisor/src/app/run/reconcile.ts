import { type AgentKey, derivedId, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { endChild, recordEnding } from '../../store/agent/endings.ts';
import { endedRuns, settledAgents } from '../../store/run/open-agents.ts';
import { ignoreNotFound } from '../order/order-handler.ts';

type Context = Pick<SupervisorContext, 'store' | 'clock' | 'peers' | 'telemetry' | 'config'>;

/** Maximum number of tabs and pools that a round compares. */
const PAGE = 200;
/** Maximum number of agents that a round compares, equal to the limit of one request. */
const AGENTS_PAGE = 1_000;
/** Maximum number of differences of one kind (agents, tabs, pools) and one tenant that a round repairs. */
const MAX_PER_TENANT = 20;

const BEFORE_ALL: AgentKey = { tenant: '', runId: '', instance: '' };

/**
 * Maximum number of differences of one kind that are kept between rounds. Above it, all kept differences are discarded;
 * later rounds find them again.
 */
const MAX_SUSPECTS = 10_000;

/**
 * Compares the agents of open runs with their workers, and the open tabs and pools of the meter and of spawn-budget
 * with the runs, one page of each per round. Repairs inconsistencies that no open order will resolve (BD-3): an agent
 * that has ended or is unknown at its worker, and a tab or a pool of a run that has ended or is unknown. A difference
 * is repaired only when a later round finds it again.
 */
export class Reconciler {
  readonly #context: Context;
  readonly #agents = new Set<string>();
  readonly #tabs = new Set<string>();
  readonly #pools = new Set<string>();
  #afterAgent: AgentKey = BEFORE_ALL;
  #afterTab: AgentKey | undefined;
  #afterPool: RunKey | undefined;
  #nextRoundAt: number;

  constructor(context: Context) {
    this.#context = context;
    this.#nextRoundAt = context.clock.monotonicMs() + context.config.reconcileMs;
  }

  /** Runs a round when one is due; a peer that does not answer is compared in a later round. */
  async sweep(): Promise<void> {
    const now = this.#context.clock.monotonicMs();
    if (now < this.#nextRoundAt) return;
    this.#nextRoundAt = now + this.#context.config.reconcileMs;
    const rounds = [this.#compareAgents(), this.#compareTabs(), this.#comparePools()];
    for (const { status, reason } of (await Promise.allSettled(rounds)).filter(isRejected)) {
      this.#context.telemetry.log.warn(
        { err: reason, status },
        'failed to compare runs with a peer',
      );
    }
  }

  async #compareAgents(): Promise<void> {
    const { store, clock, peers, config, telemetry } = this.#context;
    const createdBefore = new Date(clock.now().getTime() - config.reconcileMs);
    const page = { after: this.#afterAgent, limit: AGENTS_PAGE, createdBefore };
    const agents = await settledAgents(store.db, page);
    const isLastPage = agents.length < AGENTS_PAGE;
    this.#afterAgent = (isLastPage ? undefined : agents.at(-1)) ?? BEFORE_ALL;
    if (agents.length === 0) return;
    const isAlive = await peers.agentWorker.findAgents(agents);
    const unknown = agents.filter((_, index) => isAlive[index] === false);
    const missing = await this.#withoutExternal(unknown);
    for (const agent of this.#confirmed(this.#agents, missing, agents)) {
      const { tenant, runId, instance } = agent;
      telemetry.log.warn(
        { tenant, run_id: runId, agent: instance },
        'agent ended because its worker no longer runs it',
      );
      await this.#endLost(agent);
    }
  }

  /** Removes the external agents from `agents`, except those that agent-proxy reports as ended or unknown. */
  async #withoutExternal(agents: readonly AgentKey[]): Promise<readonly AgentKey[]> {
    const { store, peers } = this.#context;
    const external: AgentKey[] = [];
    for (const key of agents) {
      if (isExternal(await loadAgent(store.db, key))) external.push(key);
    }
    if (external.length === 0) return agents;
    const isAlive = await peers.agentProxy.findAgents(external);
    return agents.filter((key) => {
      const index = external.indexOf(key);
      return index === -1 || isAlive[index] === false;
    });
  }

  async #endLost(key: AgentKey): Promise<void> {
    const { store, clock } = this.#context;
    const at = clock.now();
    await store.transaction(
      async (trx) => {
        const agent = await loadAgent(trx, key);
        if (agent.ended_at !== null) return;
        const ending = {
          ...key,
          stopReason: 'error:agent_lost',
          phase: 'supervisor',
          detail: 'The worker no longer runs the agent.',
        } as const;
        if (agent.parent_instance === null) await recordEnding(trx, ending, at);
        else await endChild(trx, ending, at);
      },
      { run: key, background: true },
    );
  }

  async #compareTabs(): Promise<void> {
    const { store, peers, config, telemetry } = this.#context;
    const page = { after: this.#afterTab, limit: PAGE, minAgeMs: config.reconcileMs };
    const tabs = await peers.executionMeter.openTabs(page);
    this.#afterTab = tabs.length < PAGE ? undefined : tabs.at(-1);
    for (const tab of this.#confirmed(this.#tabs, await endedRuns(store.db, tabs), tabs)) {
      const { tenant, runId, instance } = tab;
      telemetry.log.warn(
        { tenant, run_id: runId, agent: instance },
        'tab closed because its run has ended or is unknown',
      );
      const requestId = derivedId('req', tenant, runId, instance, 'reconcile_tab');
      await ignoreNotFound(peers.executionMeter.closeTab(requestId, tab));
    }
  }

  async #comparePools(): Promise<void> {
    const { store, peers, config, telemetry } = this.#context;
    const page = { after: this.#afterPool, limit: PAGE, minAgeMs: config.reconcileMs };
    const pools = await peers.spawnBudget.openPools(page);
    this.#afterPool = pools.length < PAGE ? undefined : pools.at(-1);
    for (const pool of this.#confirmed(this.#pools, await endedRuns(store.db, pools), pools)) {
      const { tenant, runId } = pool;
      telemetry.log.warn(
        { tenant, run_id: runId },
        'pool closed because its run has ended or is unknown',
      );
      const requestId = derivedId('req', tenant, runId, 'reconcile_pool');
      await peers.spawnBudget.closePool(requestId, pool);
    }
  }

  /**
   * Returns the differences that an earlier round also found, up to the limit per tenant, and keeps the remaining
   * differences for later rounds.
   * @param compared everything that this round compared
   */
  #confirmed<K extends RunKey>(
    suspects: Set<string>,
    differences: readonly K[],
    compared: readonly K[],
  ): K[] {
    const known = new Set(differences.map(textOf).filter((text) => suspects.has(text)));
    for (const key of compared) suspects.delete(textOf(key));
    if (suspects.size > MAX_SUSPECTS) suspects.clear();
    const perTenant = new Map<string, number>();
    return differences.filter((key) => {
      const count = (perTenant.get(key.tenant) ?? 0) + 1;
      const isDue = known.has(textOf(key)) && count <= MAX_PER_TENANT;
      if (isDue) perTenant.set(key.tenant, count);
      else suspects.add(textOf(key));
      return isDue;
    });
  }
}

function isRejected(result: PromiseSettledResult<void>): result is PromiseRejectedResult {
  return result.status === 'rejected';
}

function textOf(key: RunKey & { readonly instance?: string }): string {
  return `${key.tenant}/${key.runId}/${key.instance ?? ''}`;
}
