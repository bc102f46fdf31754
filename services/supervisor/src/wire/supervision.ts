import type { MessageInitShape } from '@bufbuild/protobuf';
import { AgentKind as KindMessage } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import {
  Priority as PriorityMessage,
  HistoryRetention as RetentionMessage,
  type SupervisionSchema,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { AgentKind, AgentRef, HistoryRetention, PriorityName } from '@writ/kernel';
import { budgetFromJson } from '../domain/manifest/manifest-json.ts';
import type { AgentRow } from '../store/agent/agents.ts';
import type { RunRow } from '../store/run/runs.ts';
import { budgetMessage, spawnBudgetMessage } from './budget.ts';

const KINDS: Readonly<Record<AgentKind, KindMessage>> = {
  react: KindMessage.REACT,
  'json-action': KindMessage.JSON_ACTION,
  orchestrator: KindMessage.ORCHESTRATOR,
  'user-proxy': KindMessage.USER_PROXY,
  information: KindMessage.INFORMATION,
  'personal-feed': KindMessage.PERSONAL_FEED,
  flow: KindMessage.FLOW,
  custom: KindMessage.CUSTOM,
  external: KindMessage.EXTERNAL,
};

/** Converts the kind of an agent. */
export function kindMessage(kind: AgentKind): KindMessage {
  return KINDS[kind];
}

/** Converts a priority; the names are the same. */
export function priorityMessage(name: string): PriorityMessage {
  return PriorityMessage[name as PriorityName] ?? PriorityMessage.NORMAL;
}

/** Reads a priority; undefined when the request has none. */
export function priorityFrom(message: PriorityMessage): PriorityName | undefined {
  const entry = Object.entries(PriorityMessage).find(([, value]) => value === message);
  return entry === undefined || entry[0] === 'UNSPECIFIED' ? undefined : (entry[0] as PriorityName);
}

const RETENTIONS: Readonly<Record<HistoryRetention, RetentionMessage>> = {
  none: RetentionMessage.NONE,
  run: RetentionMessage.RUN,
  permanent: RetentionMessage.PERMANENT,
};

/** Converts a retention. */
export function retentionMessage(retention: string): RetentionMessage {
  return RETENTIONS[retention as HistoryRetention] ?? RetentionMessage.UNSPECIFIED;
}

/** Reads a retention; undefined when the request has none. */
export function retentionFrom(message: RetentionMessage): HistoryRetention | undefined {
  const entry = Object.entries(RETENTIONS).find(([, value]) => value === message);
  return entry?.[0] as HistoryRetention | undefined;
}

/** The name and instance of an agent. */
export function agentRefOf(agent: AgentRow): AgentRef {
  return { name: agent.name, instance: agent.instance };
}

/** The parent of an agent; undefined for the root. */
export function parentRefOf(agent: AgentRow): AgentRef | undefined {
  if (agent.parent_instance === null || agent.parent_name === null) return undefined;
  return { name: agent.parent_name, instance: agent.parent_instance };
}

/** The root of a run. */
export function rootRefOf(run: RunRow): AgentRef {
  return { name: run.agent_name, instance: run.root_instance };
}

/** The position of an agent in the tree of its run (SUP-1). */
export function supervisionMessage(
  run: RunRow,
  agent: AgentRow,
): MessageInitShape<typeof SupervisionSchema> {
  const parent = parentRefOf(agent);
  return {
    runId: run.run_id,
    sessionId: run.session_id,
    root: rootRefOf(run),
    ...(parent && { parent }),
    depth: agent.depth,
    spawnBudget: spawnBudgetMessage(JSON.parse(run.spawn_budget)),
    executionBudget: budgetMessage(budgetFromJson(agent.execution_budget)),
    retention: retentionMessage(agent.retention),
    priority: priorityMessage(agent.priority),
  };
}
