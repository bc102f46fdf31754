import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { HookManager, type HookProblem } from '../src/hook-manager.ts';

/** A hook event of the run `run-1`. */
export const hook = (init: MessageInitShape<typeof HookEventSchema>) =>
  create(HookEventSchema, { tenant: 'acme', runId: 'run-1', emitter: 'execution-meter', ...init });

/** An LLM_END with 120 tokens for 3,000 nano-USD. */
export const llmEnd = (eventId: string, agent = 'writer', instance = `${agent}-1`) =>
  hook({
    eventId,
    type: HookEventType.LLM_END,
    agent: { name: agent, instance },
    usage: { inputTokens: 100n, outputTokens: 20n },
    costNanoUsd: 3_000n,
  });

/** The RUN_END event of an agent that ended successfully. */
export const runEnd = (agent: string, instance = `${agent}-1`) =>
  hook({
    eventId: `end-${instance}`,
    type: HookEventType.RUN_END,
    agent: { name: agent, instance },
    status: 'success',
  });

/** A handoff of an agent to a child. */
export const handoff = (agent: string, child: string) =>
  hook({
    eventId: `handoff-${child}`,
    type: HookEventType.HANDOFF,
    agent: { name: agent, instance: `${agent}-1` },
    otherAgent: { name: child, instance: `${child}-1` },
  });

/** Creates a manager; `problems` collects the problems that it reports. */
export function watched(options: { agent?: string; timeoutMs?: number } = {}) {
  const problems: HookProblem[] = [];
  const manager = new HookManager({ ...options, onProblem: (problem) => problems.push(problem) });
  return { manager, problems };
}
