import { ManualClock, RunMeta, Supervision } from '@writ/kernel';
import type { AgentManifest } from '../src/domain/agent/manifest.ts';
import type { ChatTurn, LlmOutcome, LlmRequest } from '../src/domain/calls/model-call.ts';
import type {
  AgentContext,
  ModelAnswer,
  ProposalOutcome,
  RateLimit,
} from '../src/runtime/agent.ts';
import type { Stop } from '../src/runtime/unwinding.ts';

/** Operations that a scripted context recorded. */
export interface Asked {
  readonly requests: LlmRequest[];
  readonly calls: { readonly tool: string; readonly argumentsJson: string }[];
  readonly slept: number[];
  readonly turns: RateLimit[];
  readonly logged: string[];
  readonly tripped: string[];
  readonly remembered: ChatTurn[];
}

/**
 * Manifest, answers and history of a scripted context. Each model call takes the next of `answers`, and each tool call
 * the next of `outcomes`.
 */
export interface Script {
  readonly manifest: AgentManifest;
  readonly answers?: LlmOutcome[];
  readonly outcomes?: ProposalOutcome[];
  /** History of the session. */
  readonly history?: readonly ChatTurn[];
}

/** Thrown where the runtime would unwind the agent. */
class ScriptedStop extends Error {
  readonly stop: Stop;

  constructor(stop: Stop) {
    super(stop.stopReason);
    this.stop = stop;
  }
}

/** A context without a runtime: returns scripted answers and records operations. */
export function scriptedContext({ manifest, answers = [], outcomes = [], history = [] }: Script): {
  readonly ctx: AgentContext;
  readonly asked: Asked;
} {
  const clock = new ManualClock(new Date(0));
  const asked: Asked = {
    requests: [],
    calls: [],
    slept: [],
    turns: [],
    logged: [],
    tripped: [],
    remembered: [],
  };
  const ctx: AgentContext = {
    manifest,
    meta: RunMeta.standalone({
      runId: 'run-1',
      clock,
      supervision: Supervision.root({ name: 'writer', instance: 'writer-1' }, { runId: 'run-1' }),
    }),
    check: () => undefined,
    now: () => clock.now(),
    random: () => 1,
    log: (message) => asked.logged.push(message),
    tools: async () => [],
    llm: async (request): Promise<ModelAnswer> => {
      asked.requests.push(request);
      return { ...next(answers, 'answer'), callId: `op-${asked.requests.length}` };
    },
    propose: unscripted,
    tool: async (tool, argumentsJson) => {
      asked.calls.push({ tool, argumentsJson });
      return next(outcomes, 'outcome');
    },
    reply: unscripted,
    hasRecordedProposal: () => false,
    spawn: unscripted,
    ask: unscripted,
    handOff: unscripted,
    emit: unscripted,
    follow: unscripted,
    sleepUntilSignal: unscripted,
    sleep: async (ms) => {
      asked.slept.push(ms);
      clock.advance(ms);
    },
    turn: async (limit) => void asked.turns.push(limit),
    all: async (branches) => await Promise.all(branches.map((branch) => branch(ctx))),
    step: async (_, work) => await work(),
    flow: () => undefined,
    trip: (guardrail) => asked.tripped.push(guardrail),
    recall: async () => history,
    restore: async () => undefined,
    checkpoint: () => undefined,
    remember: (turns) => asked.remembered.splice(0, Infinity, ...turns),
    draft: () => undefined,
    stop: (stop) => {
      throw new ScriptedStop(stop);
    },
  };
  return { ctx, asked };
}

function next<T>(script: T[], what: string): T {
  const item = script.shift();
  if (item === undefined) throw new Error(`The script has no further ${what}.`);
  return item;
}

function unscripted(): never {
  throw new Error('Not scripted.');
}
