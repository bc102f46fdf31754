import { ByteCache } from '@writ/kernel';
import type { HookContext } from './hook-context.ts';
import type { HookCallback, Hooks } from './hook-manager.ts';

/** Usage and cost of an agent with its descendants. */
export interface RunCost {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_nano_usd: bigint;
  /** Number of settled model calls. */
  readonly calls: number;
}

/** Called when an agent ends, with its total, which includes its descendants, and its RUN_END event. */
export type OnTotal = (runId: string, total: RunCost, end: HookContext) => void;

/** Maximum memory for runs in progress, and the estimated size of one agent or delegation, in bytes. */
const MAX_BYTES = 16_000_000;
const AGENT_BYTES = 256;

const NOTHING: RunCost = { input_tokens: 0, output_tokens: 0, cost_nano_usd: 0n, calls: 0 };

/** The recorded costs of a run: the sum of each agent, and the parent of each child. */
interface RunCosts {
  readonly agents: Map<string, RunCost>;
  /** The parent of each child. */
  readonly parents: Map<string, string>;
}

/**
 * Sums the usage of LLM_END events, and reports the total of each agent at its RUN_END (HK-3): its own calls and those
 * of the descendants whose HANDOFF was observed. For the root, this is the total of the run. With a manager for one
 * agent, each total contains only the usage of that agent, per instance. Runs whose end is not observed are retained up
 * to 16 MB (about 60,000 agents and delegations); above this limit, the least recently active runs are dropped.
 *
 * @example
 * ```ts
 * import { CostTracker, HookManager } from '@writ/hooks';
 * import { formatUsd } from '@writ/kernel';
 *
 * const tracker = new CostTracker((runId, total, { agent_name }) =>
 *   console.log(runId, agent_name, formatUsd(total.cost_nano_usd)),
 * );
 * const hooks = new HookManager({ onProblem: (problem) => console.error(problem) });
 * hooks.register(tracker.hooks);
 * ```
 */
export class CostTracker {
  readonly #runs = new ByteCache<RunCosts>({ name: 'run_costs', maxBytes: MAX_BYTES });
  readonly #onTotal: OnTotal;
  /** The callbacks for `HookManager.register`. */
  readonly hooks: Hooks;

  /**
   * @param onTotal called with the total of each agent that has ended; the costs of an agent without an observed
   * parent, such as the root, are removed when it ends
   */
  constructor(onTotal: OnTotal) {
    this.#onTotal = onTotal;
    const costTracker: HookCallback = (context) => this.#observe(context);
    this.hooks = { HANDOFF: costTracker, LLM_END: costTracker, RUN_END: costTracker };
  }

  /** Returns the total of all observed agents of a run in progress. */
  total(runId: string): RunCost {
    return sum(this.#runs.get(runId)?.agents.values() ?? []);
  }

  #observe(context: HookContext): void {
    if (context.event === 'HANDOFF') this.#connect(context);
    else if (context.event === 'LLM_END') this.#add(context);
    else this.#close(context);
  }

  #connect({ run_id: runId, agent_id: parent, other_agent_id: child }: HookContext): void {
    if (runId === undefined || parent === undefined || child === undefined) return;
    const costs = this.#costsOf(runId);
    costs.parents.set(child, parent);
    this.#keep(runId, costs);
  }

  #add({ run_id: runId, agent_id: agent, usage, cost_nano_usd: cost = 0n }: HookContext): void {
    if (runId === undefined || agent === undefined || usage === undefined) return;
    const costs = this.#costsOf(runId);
    const { agents } = costs;
    const { input_tokens, output_tokens } = usage;
    const call = { input_tokens, output_tokens, cost_nano_usd: cost, calls: 1 };
    agents.set(agent, sum([agents.get(agent) ?? NOTHING, call]));
    this.#keep(runId, costs);
  }

  #close(end: HookContext): void {
    const { run_id: runId, agent_id: ended } = end;
    if (runId === undefined || ended === undefined) return;
    const costs = this.#costsOf(runId);
    const { agents, parents } = costs;
    const isWithin = (agent: string): boolean => {
      for (let at: string | undefined = agent; at !== undefined; at = parents.get(at)) {
        if (at === ended) return true;
      }
      return false;
    };
    const subtree = [...agents.keys()].filter(isWithin);
    const total = sum(subtree.map((agent) => agents.get(agent) ?? NOTHING));
    // The calls of a child are kept for the total of its parent.
    if (!parents.has(ended)) {
      for (const agent of subtree) agents.delete(agent);
      for (const child of [...parents.keys()].filter(isWithin)) parents.delete(child);
    }
    this.#keep(runId, costs);
    this.#onTotal(runId, total, end);
  }

  #costsOf(runId: string): RunCosts {
    return this.#runs.get(runId) ?? { agents: new Map(), parents: new Map() };
  }

  /** Stores the costs of a run after a change, or deletes the run if none are left. */
  #keep(runId: string, costs: RunCosts): void {
    const entries = costs.agents.size + costs.parents.size;
    if (entries === 0) this.#runs.delete(runId);
    else this.#runs.set(runId, costs, entries * AGENT_BYTES);
  }
}

function sum(costs: Iterable<RunCost>): RunCost {
  let total = NOTHING;
  for (const { input_tokens, output_tokens, cost_nano_usd, calls } of costs) {
    total = {
      input_tokens: total.input_tokens + input_tokens,
      output_tokens: total.output_tokens + output_tokens,
      cost_nano_usd: total.cost_nano_usd + cost_nano_usd,
      calls: total.calls + calls,
    };
  }
  return total;
}
