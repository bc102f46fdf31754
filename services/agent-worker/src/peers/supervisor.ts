import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { DataLossError, omitUndefined, type Phase, type PriorityName } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { CarriedEvent } from '../domain/agent/carried-event.ts';
import type { AgentCredentials } from '../domain/agent/credentials.ts';
import type { OwnTime } from '../domain/agent/peer-time.ts';
import type { Action, Decision, SpawnAnswer } from '../domain/calls/decision.ts';
import { eventMessages } from '../wire/carried-event.ts';
import { credentialsFrom } from '../wire/credentials.ts';
import { actionMessage, decisionFrom } from '../wire/decision.ts';

/** Receipts, results (SV-7) and events (HK-1) that are attached to a request. */
interface Attachments {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
  readonly events: readonly CarriedEvent[];
}

/** A proposal to review. */
interface ReviewCall extends Attachments {
  readonly callId: string;
  readonly modelCallId?: string;
  readonly rawText?: string;
  readonly action?: Action;
  readonly composed?: boolean;
  /** Whether the final answer is the partial result of a paused agent. */
  readonly partial?: boolean;
}

/** A delegation to be reviewed and executed. */
interface SpawnCall extends Attachments {
  readonly callId: string;
  readonly agent: string;
  readonly task: string;
  /** A subset of the tools in the child's manifest; default: all of them. */
  readonly tools?: readonly string[];
  /** A subset of the models in the child's manifest; default: all of them. */
  readonly models?: readonly string[];
  /** A lower priority than that of the child's manifest. */
  readonly priority?: PriorityName;
  /** Correlation id of the child's first message. */
  readonly correlationId: string;
}

/** A request to end a child. */
interface EndChildCall {
  readonly callId: string;
  readonly childInstance: string;
  readonly outcome: string;
}

/** The outcome of an agent that did not end with an approved final answer. */
interface OutcomeReport extends Attachments {
  readonly requestId: string;
  readonly stopReason: string;
  readonly phase: Phase;
  readonly callId?: string | undefined;
  readonly detail?: string | undefined;
}

/** How an agent ended. */
interface RecordedEnding {
  readonly stopReason: string;
  /** The approved answer with which the agent ended. */
  readonly answer: string | undefined;
}

/** Client of the supervisor. Calls are idempotent and throw the errors that the supervisor returns. */
export interface SupervisorPeer {
  /** Makes the supervisor reject calls of workers that held an earlier lease of the agent (RT-2). */
  admitEpoch(options: CallOptions): Promise<void>;
  /** Requests a decision; a repeated call returns the recorded decision (SV-1). */
  reviewAction(call: ReviewCall, options: CallOptions): Promise<Decision>;
  /**
   * Returns the current decision, with a new writ if it approves a tool call. The supervisor rejects the request of an
   * agent that has ended, is paused or is halted.
   */
  getDecision(callId: string, options: CallOptions): Promise<Decision>;
  /** Reviews a delegation and creates its child; a repeated call returns the same child (SUP-9). */
  spawnChild(call: SpawnCall, options: CallOptions): Promise<SpawnAnswer>;
  /**
   * Ends a child unconditionally; returns its stop reason, which may be from an earlier end (SB-3).
   */
  endChild(call: EndChildCall, options: CallOptions): Promise<string>;
  /** Returns new tokens; the token in the options may be expired. */
  refreshTokens(options: CallOptions): Promise<AgentCredentials>;
  /** Reports how an agent ended; returns the ending that is recorded (AG-7). */
  reportOutcome(report: OutcomeReport, options: CallOptions): Promise<RecordedEnding>;
  close(): void;
}

const PRIORITIES: Readonly<Record<PriorityName, Priority>> = {
  BACKGROUND: Priority.BACKGROUND,
  LOW: Priority.LOW,
  NORMAL: Priority.NORMAL,
  HIGH: Priority.HIGH,
  CRITICAL: Priority.CRITICAL,
};

/** Creates a gRPC client of the supervisor. */
export function createSupervisorPeer(options: RpcClientOptions, ownTime: OwnTime): SupervisorPeer {
  const reviews = createRpcClient(ReviewService, options);
  const supervision = createRpcClient(SupervisionService, options);
  return {
    async admitEpoch(call) {
      await supervision.getManifest({}, call);
    },
    async reviewAction(
      { callId, modelCallId, rawText, action, composed, partial, ...attached },
      call,
    ) {
      const { decision } = await reviews.reviewAction(
        {
          callId,
          proposal:
            action === undefined
              ? { case: 'rawText', value: rawText ?? '' }
              : { case: 'action', value: actionMessage(action) },
          ...omitUndefined({ modelCallId, composed, partial }),
          ...attachmentMessages(attached),
        },
        call,
      );
      return decisionFrom(decision);
    },
    async getDecision(callId, call) {
      const { decision } = await reviews.getDecision({ callId }, call);
      return decisionFrom(decision);
    },
    async spawnChild({ callId, agent, task, correlationId, ...restrictions }, call) {
      const { tools = [], models = [], priority, ...attached } = restrictions;
      const { decision, child, slotRefusal } = await supervision.spawnChild(
        {
          callId,
          delegation: { agent, task },
          tools: [...tools],
          models: [...models],
          ...(priority !== undefined && { priority: PRIORITIES[priority] }),
          correlationId,
          ...attachmentMessages(attached),
        },
        call,
      );
      return {
        decision: decisionFrom(decision),
        slotRefusal,
        ...(child && { child: { name: child.name, instance: child.instance } }),
      };
    },
    async endChild(request, call) {
      const { stopReason } = await supervision.endChild(request, call);
      return stopReason;
    },
    async refreshTokens(call) {
      const { credentials } = await supervision.refreshTokens({}, call);
      if (credentials !== undefined) return credentialsFrom(credentials, ownTime);
      throw new DataLossError(
        'CREDENTIALS_MISSING',
        'The response of the supervisor has no credentials.',
      );
    },
    async reportOutcome({ requestId, stopReason, phase, callId, detail, ...attached }, call) {
      const recorded = await supervision.reportOutcome(
        {
          requestId,
          stopReason,
          phase,
          ...omitUndefined({ callId, detail }),
          ...attachmentMessages(attached),
        },
        call,
      );
      const { answer } = recorded;
      return { stopReason: recorded.stopReason, answer: answer === '' ? undefined : answer };
    },
    close() {
      reviews.close();
      supervision.close();
    },
  };
}

function attachmentMessages({ receipts, observations, events }: Attachments) {
  return {
    receipts: [...receipts],
    observations: observations.map((observation) => ({ ...observation })),
    events: eventMessages(events),
  };
}
