import { parseDuration } from '@writ/config';
import type { AgentDefinition } from '../../domain/manifest/agent-definition.ts';

/**
 * The settings of one agent, in agents.yaml and for createAgent. Every key has the meaning and the default that
 * docs/reference/configuration-files.md states for it; durations are text such as `30s` or `1m30s`, money is decimal USD.
 * A limit that is omitted is unlimited, unless it has a default; 0 means none at all.
 */
export interface AgentSettings extends Omit<AgentDefinition, 'model' | 'budget' | 'sub_agents'> {
  /** Omitted by kinds that call no model. */
  readonly model?: Omit<NonNullable<AgentDefinition['model']>, 'timeout'> & {
    readonly timeout?: string;
  };
  readonly budget?: Omit<NonNullable<AgentDefinition['budget']>, 'deadline'> & {
    readonly deadline?: string;
  };
  readonly sub_agents?: readonly (Omit<
    NonNullable<AgentDefinition['sub_agents']>[number],
    'ask_timeout'
  > & { readonly ask_timeout?: string })[];
}

/** The definition of settings that conform to AGENT_SCHEMA, with durations in milliseconds. */
export function definitionOf(settings: AgentSettings): AgentDefinition {
  const { model, budget, sub_agents, ...rest } = settings;
  const { deadline, ...budgetRest } = budget ?? {};
  return {
    ...rest,
    ...(model !== undefined && { model: modelOf(model) }),
    budget: {
      ...budgetRest,
      ...(deadline !== undefined && { deadline: parseDuration(deadline) }),
    },
    sub_agents: (sub_agents ?? []).map(({ ask_timeout, ...agent }) => ({
      ...agent,
      ...(ask_timeout !== undefined && { ask_timeout: parseDuration(ask_timeout) }),
    })),
  };
}

function modelOf({ timeout, ...model }: NonNullable<AgentSettings['model']>) {
  return { ...model, ...(timeout !== undefined && { timeout: parseDuration(timeout) }) };
}
