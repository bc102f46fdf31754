import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AGENT, type ManifestFields } from './delivery.ts';
import type { FakeAnswer, FakeModel } from './fake-meter.ts';
import type { World } from './world.ts';

/** An orchestrator with react agents and their scripted models. */

export const LEAD: Partial<ManifestFields> = {
  kind: AgentKind.ORCHESTRATOR,
  tools: [],
  subAgents: [{ name: 'reader' }, { name: 'counter' }],
};

const CHILD: Partial<ManifestFields> = { kind: AgentKind.REACT, tools: ['get_refund_context'] };

/** Makes the supervisor approve everything and deliver the team's children. */
export function gatherTeam(world: World): void {
  world.withChildren({ reader: CHILD, counter: CHILD, closer: CHILD });
  world.supervisor.rule = approveAll;
}

/** Approves every valid action. */
export function approveAll(raw: string) {
  return { verdict: 'approve', reason: 'allowed', action: JSON.parse(raw) } as const;
}

/**
 * The model of the team: each child calls a tool once and then answers; the lead delegates to `reader` and `counter`
 * and then answers.
 */
export const teamModel: FakeModel = (_, { messages }, agent): FakeAnswer => {
  const turn = messages.filter(({ role }) => role === 3).length;
  if (agent === AGENT.instance) {
    if (turn > 0) return `Both reported: ${resultsOf(messages).join(' and ')}.`;
    const handOver = (to: string) => ({ tool: `handoff_${to}`, args: { task: `Do it, ${to}.` } });
    return { toolUses: [handOver('reader'), handOver('counter')] };
  }
  if (turn === 0) return { toolUses: [{ tool: 'get_refund_context', args: { user_id: 42 } }] };
  return `${agent.split('-')[0]} is done`;
};

function resultsOf(messages: Parameters<FakeModel>[1]['messages']): string[] {
  return (messages.at(-1)?.parts ?? []).flatMap(({ kind }) =>
    kind.case === 'toolResult' ? [kind.value.content] : [],
  );
}
