import { type AgentKey, agentKeyText, isWritError, PreconditionError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { ProxyPeers, SlotAnswer } from '../../peers/peers.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { RequestsInProgress } from './requests-in-progress.ts';

/** Dependencies of {@link Slots}. */
export interface SlotsParts {
  readonly peers: Pick<ProxyPeers, 'renew'>;
  readonly tokens: AgentTokens;
  readonly open: RequestsInProgress;
  readonly log: Logger;
  /** Milliseconds, see AgentProxyConfig. */
  readonly grantMs: number;
  readonly suspendMs: number;
}

interface Held {
  readonly grant: string;
  readonly renewedAt: number;
}

/**
 * The slots of external agents. A slot is renewed when a request needs it, and reported as waiting after `suspendMs`
 * without a request that needs it, so that an idle agent uses no active time (SB-4, EM-1).
 */
export class Slots {
  readonly #parts: SlotsParts;
  readonly #held = new Map<string, Held>();
  readonly #renewals = new Map<string, Promise<string>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #suspensions = new Map<string, Promise<void>>();

  constructor(parts: SlotsParts) {
    this.#parts = parts;
  }

  /**
   * Stores the grant of a delivered agent, if there is one; the slot is reported as waiting unless a request comes
   * within `suspendMs`.
   */
  delivered(agent: AgentKey, grant: string): void {
    if (grant !== '') this.#hold(agent, grant);
    this.#suspendLater(agent);
  }

  /**
   * Returns a grant that is valid long enough to begin a call.
   * @throws PreconditionError AGENT_PAUSED while the agent has no slot; RUN_ENDED, SLOT_REFUSED; what Renew and
   *   AgentTokens.of throw
   */
  async grant(agent: AgentKey): Promise<string> {
    const key = agentKeyText(agent);
    clearTimeout(this.#timers.get(key));
    // A suspension must not arrive after the renewal.
    await this.#suspensions.get(key);
    const held = this.#held.get(key);
    if (held !== undefined && performance.now() - held.renewedAt < this.#parts.grantMs)
      return held.grant;
    const renewal = this.#renewals.get(key) ?? this.#renew(agent);
    this.#renewals.set(key, renewal);
    return await renewal.finally(() => this.#renewals.delete(key));
  }

  /**
   * Renews the grant of an agent if this process has one and it is older than `grantMs`, so that the lease of the slot
   * does not expire during a long request.
   */
  async keep(agent: AgentKey): Promise<void> {
    if (this.#held.has(agentKeyText(agent))) await this.grant(agent);
  }

  /**
   * Reports the slot as waiting after `suspendMs` unless a request needs it. Called when a request ends or begins to
   * wait for a person, and after a spawn or the execution of a task.
   */
  released(agent: AgentKey): void {
    if (!this.#parts.open.hasActive(agent)) this.#suspendLater(agent);
  }

  /** Forgets the grant of an agent that has ended or is suspended, or whose grant was refused. */
  forget(agent: AgentKey): void {
    const key = agentKeyText(agent);
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    this.#held.delete(key);
  }

  /** Cancels all pending reports of waiting slots. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  async #renew(agent: AgentKey): Promise<string> {
    const { peers, tokens } = this.#parts;
    let answer = await peers.renew((await tokens.of(agent)).spawnBudget, 'run');
    if (isTokenRefused(answer))
      answer = await peers.renew((await tokens.of(agent, true)).spawnBudget, 'run');
    if ('grant' in answer) return this.#hold(agent, answer.grant);
    if ('refusal' in answer) {
      throw new PreconditionError(
        'SLOT_REFUSED',
        `spawn-budget refused a slot of agent ${agent.instance}: ${answer.refusal}.`,
        { agent: agent.instance, cause: answer.refusal },
      );
    }
    if (answer.state === 'released')
      throw new PreconditionError('RUN_ENDED', `Run ${agent.runId} has ended.`);
    throw new PreconditionError(
      'AGENT_PAUSED',
      `Agent ${agent.instance} is paused: it holds no slot. Retry later.`,
      { agent: agent.instance, retry_after_ms: '2000' },
    );
  }

  #hold(agent: AgentKey, grant: string): string {
    this.#held.set(agentKeyText(agent), { grant, renewedAt: performance.now() });
    return grant;
  }

  #suspendLater(agent: AgentKey): void {
    const key = agentKeyText(agent);
    clearTimeout(this.#timers.get(key));
    const suspend = (): void => {
      const suspension = this.#suspend(agent).finally(() => this.#suspensions.delete(key));
      this.#suspensions.set(key, suspension);
    };
    const timer = setTimeout(suspend, this.#parts.suspendMs).unref();
    this.#timers.set(key, timer);
  }

  async #suspend(agent: AgentKey): Promise<void> {
    const { peers, tokens, open, log } = this.#parts;
    this.forget(agent);
    if (open.hasActive(agent)) return;
    try {
      await peers.renew((await tokens.of(agent)).spawnBudget, 'suspend');
    } catch (error) {
      // The lease of the slot then expires, which stops the active time as well.
      if (isWritError(error) && error.reason === 'RUN_ENDED') return;
      log.debug({ err: error, run_id: agent.runId }, 'waiting agent not reported');
    }
  }
}

function isTokenRefused(answer: SlotAnswer): boolean {
  return (
    'refusal' in answer &&
    (answer.refusal === 'TOKEN_EXPIRED' || answer.refusal === 'TOKEN_INVALID')
  );
}
