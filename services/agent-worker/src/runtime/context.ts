import { canonicalDigest, type JsonObject, type RunMeta } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { LlmOutcome, LlmRequest } from '../domain/calls/model-call.ts';
import type { ToolInfo } from '../domain/calls/tool-call.ts';
import type { Operation, OperationKind } from '../domain/journal/entry.ts';
import type { AgentContext, ModelAnswer, Proposal, ProposalOutcome } from './agent.ts';
import { orStop } from './execution.ts';
import { propose } from './proposals.ts';
import type { RunScope } from './scope.ts';
import { awaitSignal } from './signals.ts';
import { PeerRefusal, type Stop, Stopped, Unwinding } from './unwinding.ts';

/** The context of one lease of an agent (RT-1). */
export class RuntimeContext implements AgentContext {
  readonly #scope: RunScope;
  readonly #log: Logger;
  #unwinding: Unwinding | undefined;
  #hasEnded = false;

  constructor(scope: RunScope, log: Logger) {
    this.#scope = scope;
    this.#log = log;
  }

  /** Whether an approved final has ended the agent. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get manifest(): AgentManifest {
    return this.#scope.session.manifest;
  }

  get meta(): RunMeta {
    return this.#scope.session.meta;
  }

  check(): void {
    if (this.#unwinding !== undefined) throw this.#unwinding;
    try {
      this.#scope.session.check();
    } catch (error) {
      // A slot may be back before the next operation; what was thrown once holds.
      throw error instanceof Unwinding ? this.#unwindWith(error) : error;
    }
  }

  now(): Date {
    return new Date(this.#atOnce('now', '', () => this.meta.clock.now().getTime()));
  }

  random(): number {
    return this.#atOnce('random', '', () => Math.random());
  }

  log(message: string, fields: Readonly<Record<string, string | number | boolean>> = {}): void {
    this.#atOnce('log', { message, fields }, () => {
      this.#log.info(fields, message);
      return null;
    });
  }

  async tools(): Promise<readonly ToolInfo[]> {
    const { calls, peers, session } = this.#scope;
    const names = session.manifest.tools;
    // The registry may change while the agent lives: its prompts stay as they were.
    const { value } = await this.#effect('tools', { names }, true, async () => {
      if (names.length === 0) return [];
      return await orStop('worker', undefined, () =>
        calls.call({ audience: 'toolGateway' }, (options) =>
          peers.toolGateway.listTools(names, options),
        ),
      );
    });
    return value;
  }

  async llm(request: LlmRequest): Promise<ModelAnswer> {
    const { calls, peers, steps, modelTimeoutMs } = this.#scope;
    const terms = { audience: 'executionMeter', acts: true, timeoutMs: modelTimeoutMs } as const;
    const ask = async (callId: string): Promise<LlmOutcome> => {
      const call = { callId, step: steps.current, request };
      try {
        return await calls.call(terms, (options) => peers.executionMeter.generate(call, options));
      } catch (error) {
        if (!(error instanceof PeerRefusal)) throw error;
        return { kind: 'failed', stopReason: error.stopReason, detail: error.message };
      }
    };
    const { callId, value } = await this.#effect('llm', request, false, ask);
    return { ...value, callId };
  }

  async propose(proposal: Proposal): Promise<ProposalOutcome> {
    return await this.#guarded(async () => {
      const outcome = await propose(this.#scope, proposal);
      if (outcome.kind === 'finished') this.#hasEnded = outcome.decision.runEnded;
      return outcome;
    });
  }

  async sleepUntilSignal(name: string): Promise<JsonObject> {
    return await this.#guarded(async () => {
      const { position } = this.#scope.journal.next();
      const { payload } = await awaitSignal(this.#scope, name, { position, part: 0 });
      return JSON.parse(payload === '' ? '{}' : payload) as JsonObject;
    });
  }

  async step<T>(step: number, work: () => Promise<T>): Promise<T> {
    return await this.#guarded(() => this.#scope.steps.run(step, work));
  }

  stop(stop: Stop): never {
    throw this.#unwindWith(new Stopped(stop));
  }

  /** An operation that asks nobody else. */
  #atOnce<T extends number | null>(kind: OperationKind, args: unknown, live: () => T): T {
    this.check();
    const { journal } = this.#scope;
    const operation = this.#operation(journal.next().position, kind, args);
    const recorded = journal.recall(operation);
    if (recorded !== undefined) return recorded.value as T;
    const value = live();
    journal.record({ ...operation, value }, kind !== 'log');
    return value;
  }

  /** An operation of another service, known there by its call_id. */
  async #effect<T>(
    kind: OperationKind,
    args: unknown,
    isVolatile: boolean,
    live: (callId: string) => Promise<T>,
  ): Promise<{ readonly callId: string; readonly value: T }> {
    return await this.#guarded(async () => {
      const { journal, commits, session } = this.#scope;
      const { position, callId } = journal.next();
      const operation = this.#operation(position, kind, args);
      const recorded = journal.recall(operation);
      if (recorded !== undefined) return { callId, value: recorded.value as T };
      session.check();
      await commits.beforeEffect();
      const value = await live(callId);
      journal.record({ ...operation, value }, isVolatile);
      return { callId, value };
    });
  }

  #operation(position: number, kind: OperationKind, args: unknown): Operation {
    return { position, part: 0, kind, argsDigest: canonicalDigest(args) };
  }

  /** Lets nothing more happen once the agent is being taken down, even if it caught that. */
  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#unwinding !== undefined) throw this.#unwinding;
    try {
      return await work();
    } catch (error) {
      if (error instanceof Unwinding) throw this.#unwindWith(error);
      throw error;
    }
  }

  #unwindWith(unwinding: Unwinding): Unwinding {
    this.#unwinding ??= unwinding;
    return this.#unwinding;
  }
}
