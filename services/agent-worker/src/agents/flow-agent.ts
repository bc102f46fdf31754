import { isJsonObject, type JsonValue } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Agent, AgentContext, HandoffOutcome } from '../runtime/agent.ts';
import { firstMessage, textOf } from './first-message.ts';
import { partialText } from './partial-text.ts';

/** The answer of an agent of the flow. */
interface Answer {
  readonly agent: string;
  readonly text: string;
}

/**
 * Creates an agent that runs other agents in sequence or in parallel, as its manifest says; each
 * stage receives the goal and the answers of the previous stages. It calls no model.
 */
export function createFlowAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      const goal = textOf(firstMessage(ctx, inbox));
      const plan = flowPlan(manifest);
      if (typeof plan === 'string') {
        return ctx.stop({ stopReason: 'error:bad_flow', phase: 'worker', detail: plan });
      }
      ctx.flow('started');
      const answers: Answer[] = [];
      ctx.draft(() => partialText(answers.map(shown)));
      let latest: readonly Answer[] = [];
      for (const [index, stage] of plan.entries()) {
        const task = taskFor(goal, answers);
        latest = await ctx.step(index + 1, () => runStage(ctx, stage, task));
        answers.push(...latest);
      }
      // Emitted before the final answer, because its approval may end the run.
      ctx.flow('ended');
      const outcome = await ctx.reply(
        latest.length === 1 ? (latest[0]?.text ?? '') : latest.map(shown).join('\n\n'),
      );
      if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
    },
  };
}

async function runStage(ctx: AgentContext, stage: Stage, task: string): Promise<Answer[]> {
  const outcomes = await ctx.all(
    stage.map((agent) => (branch: AgentContext) => branch.handOff(agent, task)),
  );
  return outcomes.map((outcome, index) => {
    const agent = stage[index] ?? '';
    if (outcome.kind === 'replied') return { agent, text: outcome.text };
    const stop = stopFor(agent, outcome);
    ctx.flow('ended', stop.stopReason);
    return ctx.stop(stop);
  });
}

function taskFor(goal: string, answers: readonly Answer[]): string {
  return [goal, ...answers.map(shown)].join('\n\n');
}

function shown({ agent, text }: Answer): string {
  return `${agent}: ${text}`;
}

/** Returns how the agent stops after a failed stage. */
function stopFor(agent: string, outcome: Exclude<HandoffOutcome, { kind: 'replied' }>) {
  switch (outcome.kind) {
    case 'refused':
      return outcome.stop;
    case 'no_slot': {
      const detail = outcome.message;
      return { stopReason: 'budget_exhausted:spawns', phase: 'worker', detail } as const;
    }
    case 'failed': {
      const { stopReason, message: detail } = outcome;
      return { stopReason, phase: 'worker', detail } as const;
    }
    case 'timed_out':
      return {
        stopReason: 'error:flow_timed_out',
        phase: 'worker',
        detail: `${agent} did not answer in time.`,
      } as const;
    case 'target_failed':
    case 'target_cancelled':
      return {
        stopReason: `error:flow_${outcome.kind}`,
        phase: 'worker',
        detail: `${agent} ended without an answer: ${outcome.stopReason}.`,
      } as const;
  }
}

/** A stage of a flow: one agent, or several that run concurrently. */
export type Stage = readonly string[];

/**
 * Reads the stages of a flow from its manifest's options: `steps` is a list of agents, or of `{
 * parallel: [agents] }`. Returns an error message when `steps` is invalid.
 */
function flowPlan({ options, subAgents }: AgentManifest): readonly Stage[] | string {
  const { steps } = options;
  if (!Array.isArray(steps) || steps.length === 0) {
    return 'options.steps must be a list of agents, or of { parallel: [agents] }.';
  }
  const known = new Set(subAgents.map(({ name }) => name));
  const stages: Stage[] = [];
  for (const [index, step] of steps.entries()) {
    const names = namesIn(step);
    if (names === undefined) {
      return `options.steps[${index}] must be an agent's name or { parallel: [names] }.`;
    }
    const unknown = names.find((name) => !known.has(name));
    if (unknown !== undefined)
      return `options.steps[${index}] names "${unknown}", which is not in sub_agents.`;
    stages.push(names);
  }
  return stages;
}

function namesIn(step: JsonValue): Stage | undefined {
  if (typeof step === 'string') return [step];
  const names = isJsonObject(step) ? step.parallel : undefined;
  if (!Array.isArray(names) || names.length === 0) return undefined;
  const texts = names.filter((name) => typeof name === 'string');
  return texts.length === names.length ? texts : undefined;
}
