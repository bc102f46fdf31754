import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Bus } from '@writ/bus';
import type { DecisionSchema } from '@writ/contracts/writ/review/v1/decision_pb';
import type { Signer, Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Policy } from '@writ/policy';
import type { Telemetry } from '@writ/telemetry';
import type { SupervisorConfig } from './config.ts';
import type { AgentManifest } from './domain/manifest/agent-manifest.ts';
import type { SupervisorEvents } from './events.ts';
import type { SupervisorPeers } from './peers/peers.ts';
import type { AgentKey } from './store/agent/agents.ts';
import type { RunKey } from './store/change/changes.ts';
import type { SupervisorStore, SupervisorTransaction } from './store/supervisor-store.ts';

/** What every handler, order and sweep of the supervisor works with; built by service.ts. */
export interface SupervisorContext {
  readonly config: SupervisorConfig;
  readonly store: SupervisorStore;
  /** Where live progress passes by. */
  readonly bus: Pick<Bus, 'subscribeLive'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly peers: SupervisorPeers;
  readonly events: SupervisorEvents;
  /** The agents that can be started now, by name; a running run has its own, see store/run. */
  readonly agents: ReadonlyMap<string, AgentManifest>;
  /** The rules in force now; what is one decision takes them from {@link pinned}. */
  readonly policy: Policy;
}

/** The context with the rules and agents of this moment, so that one decision is by one version (SV-3). */
export function pinned<Context extends Pick<SupervisorContext, 'policy'>>(
  context: Context,
): Context {
  return { ...context };
}

/** What runs and their orders need of the reviewing half of the supervisor. */
export interface ReviewSide {
  /**
   * Checks the signatures of receipts that a worker carries, and returns how to record them and what
   * they vouch for in a transaction.
   * @throws UnauthenticatedError TOKEN_INVALID, PermissionDeniedError when one is of another agent
   */
  carriedReceipts(
    agent: AgentKey,
    receipts: readonly string[],
    observations: readonly { readonly callId: string; readonly content: string }[],
  ): Promise<(trx: SupervisorTransaction, at: Date) => Promise<void>>;
  /** A decision as it stands now, with a fresh writ when it is a yes. */
  decisionNow(agent: AgentKey, callId: string): Promise<MessageInitShape<typeof DecisionSchema>>;
  /**
   * Finds out what became of a run's writs that have no receipt yet, burning those that were never
   * used. Returns how many calls are still under way.
   */
  settleWrits(run: RunKey): Promise<number>;
}
