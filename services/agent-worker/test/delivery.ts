import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  AgentKind,
  type AgentManifestSchema,
  type RefusalHandling,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { DESK_TOOLS } from './refund-rules.ts';

/** The tenant of everything in these tests. */
export const TENANT = 'acme';
/** The run of a test that has only one. */
export const RUN = 'run-1';
/** The root agent of every run. */
export const AGENT = { name: 'refund-desk', instance: 'refund-desk-1' } as const;
/** Trace context of every run. */
export const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

type ManifestChanges = MessageInitShape<typeof AgentManifestSchema>;

/** An agent of a run as records of the fakes name it: the root by its run alone. */
export function agentKey(runId: string, instance: string): string {
  return instance === AGENT.instance ? runId : `${runId}/${instance}`;
}

/** What stands before the lines of agents other than the root. */
export function lineOf(instance: string, line: string): string {
  return instance === AGENT.instance ? line : `${instance} ${line}`;
}

/** Fields of a manifest that tests change. */
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
  outputTopic: string;
  followTopics: string[];
  optionsJson: string;
  onRefusal: RefusalHandling;
  context: { contextWindow?: bigint };
  model: { model: string; jsonMode: boolean; timeout?: Duration };
  tools: string[];
  unreviewedDeltas: boolean;
}

/** What a test may say about a delivery. */
export interface DeliveryOptions {
  readonly runId?: string;
  readonly requestId?: string;
  readonly manifest?: Partial<ManifestFields>;
  /** Instead of the root. */
  readonly agent?: { readonly name: string; readonly instance: string };
  /** Who asked it; nobody when left out. */
  readonly from?: string;
  readonly correlationId?: string;
  readonly goal?: string;
  readonly deadline?: Date;
  /** Life of the agent's tokens, ms. */
  readonly tokenTtlMs?: number;
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
    ...(deadline && { deadline: timestampFromDate(deadline) }),
  };
}

/** A refund desk's manifest with changes. */
function manifestWith(changes: Partial<ManifestFields> = {}): ManifestChanges {
  return {
    name: AGENT.name,
    definitionHash: 'hash-1',
    kind: AgentKind.JSON_ACTION,
    instructions: 'You are the refund desk.',
    finalInstructions: 'Compose the answer.',
    model: { model: 'desk', jsonMode: true },
    tools: DESK_TOOLS.map(({ name }) => name),
    limits: { maxSteps: 8 },
    ...changes,
  };
}
