import type { AgentManifest } from '../src/domain/agent/manifest.ts';

/** A manifest with defaults, overridden by the test. */
export function manifestOf(settings: Partial<AgentManifest> = {}): AgentManifest {
  return {
    name: 'writer',
    definitionHash: '',
    kind: 'react',
    description: '',
    instructions: 'Write.',
    finalInstructions: '',
    model: { model: 'small', alsoAllowed: [], jsonMode: false },
    tools: ['search'],
    limits: {},
    subAgents: [],
    guardrails: {},
    context: { strategy: '', options: {} },
    agentMiddleware: [],
    chatMiddleware: [],
    functionMiddleware: [],
    initialToolChoice: '',
    outputTopic: '',
    followTopics: [],
    unreviewedDeltas: false,
    options: {},
    ...settings,
  };
}
