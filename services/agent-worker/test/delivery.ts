import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  AgentKind,
  type AgentManifestSchema,
  type PreemptionHandling,
  type RefusalHandling,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { REFUND_TOOLS } from './refund-rules.ts';

const { JSON_ACTION } = AgentKind;

/** The tenant of all agents and requests in these tests. */
export const TENANT = 'acme';
/** Id of the run in tests with a single run. */
export const RUN = 'run-1';
/** The root agent of every run. */
export const AGENT = { name: 'refund-desk', instance: 'refund-desk-1' } as const;
/** Trace context of all runs. */
export const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

type ManifestInit = MessageInitShape<typeof AgentManifestSchema>;

/**
 * Returns the name of an agent in the records of the fakes: the run id for the root agent, otherwise run id and
 * instance.
 */
export function agentKey(runId: string, instance: string): string {
  return instance === AGENT.instance ? runId : `${runId}/${instance}`;
}

/** Returns a line for the records of the fakes, prefixed with the instance unless the agent is the root. */
export function lineOf(instance: string, line: string): string {
  return instance === AGENT.instance ? line : `${instance} ${line}`;
}

/** Fields of a manifest that tests override. */
export interface ManifestFields {
  kind: AgentKind;
  name: string;
  limits: {
    maxSteps?: number;
    maxRefusals?: number;
    maxRetries?: number;
    maxIterations?: number;
  };
  subAgents: { name: string; askTimeout?: Duration }[];
  initialToolChoice: string;
  instructions: string;
  outputTopic: string;
  followTopics: string[];
  optionsJson: string;
  onRefusal: RefusalHandling;
  onPreempt: PreemptionHandling;
  context: {
    contextWindow?: bigint;
    strategy?: string;
    optionsJson?: string;
    strategies?: { name: string; optionsJson?: string }[];
  };
  history: { provider: string; optionsJson?: string };
  model: { model: string; jsonMode: boolean; timeout?: Duration };
  tools: string[];
  unreviewedDeltas: boolean;
  agentMiddleware: { name: string; optionsJson?: string }[];
  chatMiddleware: { name: string; optionsJson?: string }[];
  functionMiddleware: { name: string; optionsJson?: string }[];
}

/** Overrides of a test delivery. */
export interface DeliveryOptions {
  readonly runId?: string;
  readonly requestId?: string;
  readonly manifest?: Partial<ManifestFields>;
  /** Default: the root agent. */
  readonly agent?: { readonly name: string; readonly instance: string };
  /** The agent that waits for the reply of the delivered agent; default: none. */
  readonly from?: string;
  readonly correlationId?: string;
  readonly goal?: string;
  readonly deadline?: Date;
  /** Default: PERMANENT for the root, RUN for children. */
  readonly retention?: HistoryRetention;
  /** Lifetime of the agent's tokens, in milliseconds. */
  readonly tokenTtlMs?: number;
  /** The agent's first slot grant; default: none. */
  readonly slotGrant?: string;
}

/** The request of a delivery, without tokens. */
export function deliveryRequest(options: DeliveryOptions) {
  const { runId = RUN, requestId = `deliver-${runId}`, goal, deadline } = options;
  const { agent = AGENT, from = '', correlationId = '' } = options;
  return {
    requestId,
    tenant: TENANT,
    agent,
    supervision: {
      runId,
      sessionId: 'session-1',
      root: AGENT,
      ...(from !== '' && { parent: AGENT }),
      depth: from === '' ? 0 : 1,
      ...(options.retention !== undefined && { retention: options.retention }),
      spawnBudget: {},
      executionBudget: { maxTokens: 10_000n, maxCostNanoUsd: 5_000_000_000n },
    },
    manifest: manifestWith(options.manifest),
    message: {
      messageId: requestId,
      text: goal ?? 'Refund the annual plan of user 42.',
      senderInstance: from,
      replyTo: from,
      correlationId,
    },
    traceparent: TRACEPARENT,
    slotGrant: options.slotGrant ?? '',
    ...(deadline && { deadline: timestampFromDate(deadline) }),
  };
}

/** Returns the manifest of a refund desk with `changes`. */
function manifestWith(changes: Partial<ManifestFields> = {}): ManifestInit {
  return {
    name: AGENT.name,
    definitionHash: 'hash-1',
    kind: JSON_ACTION,
    instructions: 'You are the refund desk.',
    finalInstructions: 'Compose the answer.',
    // The supervisor sets jsonMode in the same way.
    model: { model: 'small', jsonMode: (changes.kind ?? JSON_ACTION) === JSON_ACTION },
    tools: REFUND_TOOLS.map(({ name }) => name),
    limits: { maxSteps: 8 },
    ...changes,
  };
}
