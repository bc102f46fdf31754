import { isJsonObject, type JsonValue } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';

/** One stage of a flow: agents that run side by side; mostly just one. */
export type Stage = readonly string[];

/**
 * The stages of a flow, from its manifest's options: `steps` is a list of agents, or of
 * `{ parallel: [agents] }`. Answers a sentence instead when that is not what it says.
 */
export function flowPlan({ options, subAgents }: AgentManifest): readonly Stage[] | string {
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
      return `options.steps[${index}] names ${unknown}, which is not in sub_agents.`;
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
