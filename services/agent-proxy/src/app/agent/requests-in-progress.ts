import {
  type AgentKey,
  agentKeyText,
  IdleWait,
  OverloadedError,
  PreconditionError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import { type AgentRow, keyOf } from '../../store/agents.ts';
import { agentEnded } from './agent-ended.ts';

interface BusyAgent {
  /** The row that was last passed to `begin` or `noted`. */
  row: AgentRow;
  readonly requests: Set<RequestInProgress>;
}

/** The requests of external agents in progress in this process. */
export class RequestsInProgress {
  readonly #byAgent = new Map<string, BusyAgent>();
  readonly #maxPerAgent: number;
  readonly #idleWait = new IdleWait();
  #isDraining = false;

  constructor(maxPerAgent: number) {
    this.#maxPerAgent = maxPerAgent;
  }

  /**
   * Begins a request of the agent with this row.
   * @throws OverloadedError TOO_MANY_REQUESTS when the agent has as many in progress as permitted; UnavailableError
   *   DRAINING
   */
  begin(agent: AgentRow): RequestInProgress {
    if (this.#isDraining) throw draining();
    const key = agentKeyText(keyOf(agent));
    const open = this.#requestsOf(key);
    if (open.size >= this.#maxPerAgent) {
      throw new OverloadedError(
        'TOO_MANY_REQUESTS',
        `Agent ${agent.instance} has ${open.size} requests in progress; wait for one to end.`,
        { agent: agent.instance, retry_after_ms: '1000' },
      );
    }
    const request = new RequestInProgress(() => {
      open.delete(request);
      if (open.size === 0) this.#byAgent.delete(key);
      if (this.#byAgent.size === 0) this.#idleWait.notify();
    });
    open.add(request);
    this.#byAgent.set(key, { row: agent, requests: open });
    return request;
  }

  /** The agents with requests in progress; each row is the one that was last passed to `begin` or `noted`. */
  agents(): AgentRow[] {
    return Array.from(this.#byAgent.values(), ({ row }) => row);
  }

  /** Replaces the row of an agent with requests in progress. */
  noted(agent: AgentRow): void {
    const busy = this.#byAgent.get(agentKeyText(keyOf(agent)));
    if (busy !== undefined) busy.row = agent;
  }

  /** Whether a request of the agent is in progress. */
  has(agent: AgentKey): boolean {
    return this.#byAgent.has(agentKeyText(agent));
  }

  /** Whether the agent has a request in progress that does not wait for a person. */
  hasActive(agent: AgentKey): boolean {
    return [...this.#requestsOf(agentKeyText(agent))].some(({ isWaiting }) => !isWaiting);
  }

  /** Whether a request of the agent for this model call is in progress in this process. */
  isConnected(agent: AgentKey, callId: string): boolean {
    const open = this.#requestsOf(agentKeyText(agent));
    return [...open].some((request) => request.callId === callId);
  }

  /** Ends the requests of an agent that has ended. */
  abort(agent: AgentKey, stopReason: string): void {
    this.#abort(agent, agentEnded(agent, stopReason));
  }

  /** Ends the requests of an agent that is halted, including requests that wait for a person. */
  halt(agent: AgentKey): void {
    const { runId } = agent;
    const reason = `Run ${runId} is halted; nothing more is executed.`;
    this.#abort(agent, new PreconditionError('HALTED', reason, { run_id: runId }));
  }

  /**
   * Rejects new requests and ends all others for a shutdown: at once those that wait for a person, because the wait can
   * outlast the shutdown, and the rest after `graceMs` (SYS-4). Each gets an answer instead of a closed connection.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.#abortAll(({ isWaiting }) => isWaiting);
    if (this.#byAgent.size === 0) return;
    await this.#idleWait.wait(graceMs);
    this.#abortAll(() => true);
  }

  #abortAll(which: (request: RequestInProgress) => boolean): void {
    for (const { requests } of this.#byAgent.values()) {
      for (const request of requests) if (which(request)) request.abort(draining());
    }
  }

  #abort(agent: AgentKey, reason: WritError): void {
    for (const request of this.#requestsOf(agentKeyText(agent))) request.abort(reason);
  }

  #requestsOf(key: string): Set<RequestInProgress> {
    return this.#byAgent.get(key)?.requests ?? new Set();
  }
}

function draining(): UnavailableError {
  return new UnavailableError('DRAINING', 'agent-proxy is shutting down; repeat the request.');
}

/** One request in progress. */
export class RequestInProgress {
  /** Id of the model call of this request; empty for other requests. */
  callId = '';
  /** Whether it waits for a person, so that the agent needs no slot for it. */
  isWaiting = false;
  readonly #controller = new AbortController();
  readonly #end: () => void;

  constructor(end: () => void) {
    this.#end = end;
  }

  /** Aborts when the agent ends or is halted, when the client disconnects, and during a shutdown. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  end(): void {
    this.#end();
  }
}
