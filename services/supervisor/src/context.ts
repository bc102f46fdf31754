import type { Bus } from '@writ/bus';
import type { ApiKeys, Signer, Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Policy } from '@writ/policy';
import type { TransactionOptions } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import type { ChainGuard } from './app/audit/chain-guard.ts';
import type { CheckpointFile } from './app/audit/checkpoint-file.ts';
import type { Notifications } from './app/notify/notifications-file.ts';
import type { Notify } from './app/notify/notify.ts';
import type { HeldEvents } from './app/timeline/held-events.ts';
import type { SupervisorConfig } from './config.ts';
import type { StartQueue } from './domain/admission/start-queue.ts';
import type { AgentManifest } from './domain/manifest/agent-manifest.ts';
import type { SupervisorEvents } from './events.ts';
import type { SupervisorPeers } from './peers/peers.ts';
import type { OrderRow } from './store/change/commit-notes.ts';
import type { SupervisorStore, SupervisorTransaction } from './store/supervisor-store.ts';

/**
 * Dependencies of the RPC handlers, the order engine and the sweeps of the supervisor; created by service.ts. An order
 * is a durable unit of work with steps, such as the start of a run.
 */
export interface SupervisorContext {
  readonly config: SupervisorConfig;
  readonly store: SupervisorStore;
  /** Source of the live progress of runs. */
  readonly bus: Pick<Bus, 'subscribeLive'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly apiKeys: Pick<ApiKeys, 'verify'>;
  readonly peers: SupervisorPeers;
  readonly events: SupervisorEvents;
  /** Records the notifications of a halt, or of an event of another service (PE-2). */
  readonly notify: Notify;
  /** Prevents the supervisor from signing an audit chain that was rolled back (SV-8). */
  readonly chainGuard: ChainGuard;
  /** Keeps signed checkpoints outside the database. */
  readonly checkpointFile?: CheckpointFile | undefined;
  /** Events of the bus that wait for their predecessors (HK-1). */
  readonly heldEvents: HeldEvents;
  /** Queue of the starts that wait while too many runs are active (BD-5). */
  readonly starts: StartQueue<OrderRow>;
  /**
   * The agents that can currently be started, by name. A run keeps the definitions with which it started; see
   * store/run.
   */
  readonly agents: ReadonlyMap<string, AgentManifest>;
  /** The current notification endpoints. */
  readonly notifications: Notifications;
  /** The current policy; {@link transact} keeps it unchanged for a transaction (SV-3). */
  readonly policy: Policy;
}

/** One transaction of a use case: all of its steps share the time and one version of the policy (SV-3). */
export interface Tx {
  readonly trx: SupervisorTransaction;
  readonly at: Date;
  /** The context, with the policy and the agents as of the start of the transaction. */
  readonly context: SupervisorContext;
}

/**
 * Runs `work` in one transaction.
 * @param options `run`, `runs`, `tenant` and `resource`: what the transaction locks, everything by default;
 *   `background`: whether no caller waits for it; `urgent`: whether it takes precedence over other transactions
 */
export async function transact<T>(
  context: SupervisorContext,
  work: (tx: Tx) => Promise<T>,
  options: Pick<
    TransactionOptions,
    'run' | 'runs' | 'tenant' | 'resource' | 'background' | 'urgent'
  > = {},
): Promise<T> {
  return await context.store.transaction(
    (trx) => work({ trx, at: context.clock.now(), context: { ...context } }),
    options,
  );
}
