import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { DataLossError, type Phase } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { AgentCredentials } from '../domain/agent/credentials.ts';
import type { Action, Decision, SpawnAnswer } from '../domain/calls/decision.ts';
import { credentialsFrom } from '../wire/credentials.ts';
import { actionMessage, decisionFrom } from '../wire/decision.ts';

/** Receipts and results that the supervisor is shown (SV-7). */
interface Shown {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/** A proposal to review. */
interface ReviewCall extends Shown {
  readonly callId: string;
  readonly modelCallId?: string;
  readonly rawText?: string;
  readonly action?: Action;
  readonly composed?: boolean;
}

/** A delegation, to be reviewed and carried out. */
interface SpawnCall extends Shown {
  readonly callId: string;
  readonly agent: string;
  readonly task: string;
  /** Fewer tools than the child's manifest has; left out for all of them. */
  readonly tools?: readonly string[];
  /** Message id that the child's reply answers. */
  readonly correlationId: string;
}

/** The end of a child. */
interface EndChildCall {
  readonly callId: string;
  readonly childInstance: string;
  readonly outcome: string;
}

/** How an agent ended when no approved final ended it. */
interface OutcomeReport extends Shown {
  readonly requestId: string;
  readonly stopReason: string;
  readonly phase: Phase;
  readonly callId?: string | undefined;
  readonly detail?: string | undefined;
}

/** The supervisor, as a worker needs it. Calls are idempotent and throw the supervisor's named errors. */
export interface SupervisorPeer {
  /** Asks for a decision; a repeat gets the recorded one (SV-1). */
  reviewAction(call: ReviewCall, options: CallOptions): Promise<Decision>;
  /** The decision as it stands now, with a fresh writ when the action is not executed yet. */
  getDecision(callId: string, options: CallOptions): Promise<Decision>;
  /** Reviews a delegation and makes its child; a repeat gets the same one (SUP-9). */
  spawnChild(call: SpawnCall, options: CallOptions): Promise<SpawnAnswer>;
  /** Ends a child in every case; answers its stop reason, which may be older (SB-3). */
  endChild(call: EndChildCall, options: CallOptions): Promise<string>;
  /** Fresh tokens; the one in the options may have expired. */
  refreshTokens(options: CallOptions): Promise<AgentCredentials>;
  /** Tells how an agent ended; answers the stop reason that stands (AG-7). */
  reportOutcome(report: OutcomeReport, options: CallOptions): Promise<string>;
  close(): void;
}

/** Calls the supervisor over gRPC. */
export function createSupervisorPeer(options: RpcClientOptions): SupervisorPeer {
  const reviews = createRpcClient(ReviewService, options);
  const supervision = createRpcClient(SupervisionService, options);
  return {
    async reviewAction({ callId, modelCallId, rawText, action, composed, ...shown }, call) {
      const { decision } = await reviews.reviewAction(
        {
          callId,
          proposal:
            action === undefined
              ? { case: 'rawText', value: rawText ?? '' }
              : { case: 'action', value: actionMessage(action) },
          ...(modelCallId !== undefined && { modelCallId }),
          ...(composed !== undefined && { composed }),
          ...shownMessages(shown),
        },
        call,
      );
      return decisionFrom(decision);
    },
    async getDecision(callId, call) {
      const { decision } = await reviews.getDecision({ callId }, call);
      return decisionFrom(decision);
    },
    async spawnChild({ callId, agent, task, tools = [], correlationId, ...shown }, call) {
      const { decision, child, slotRefusal } = await supervision.spawnChild(
        {
          callId,
          delegation: { agent, task },
          tools: [...tools],
          correlationId,
          ...shownMessages(shown),
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
      if (credentials !== undefined) return credentialsFrom(credentials);
      throw new DataLossError(
        'CREDENTIALS_MISSING',
        'The supervisor answered without credentials.',
      );
    },
    async reportOutcome({ requestId, stopReason, phase, callId, detail, ...shown }, call) {
      const recorded = await supervision.reportOutcome(
        {
          requestId,
          stopReason,
          phase,
          ...(callId !== undefined && { callId }),
          ...(detail !== undefined && { detail }),
          ...shownMessages(shown),
        },
        call,
      );
      return recorded.stopReason;
    },
    close() {
      reviews.close();
      supervision.close();
    },
  };
}

function shownMessages({ receipts, observations }: Shown) {
  return { receipts: [...receipts], observations: observations.map((seen) => ({ ...seen })) };
}
