import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  type AgentRenewal,
  RenewIntent,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import {
  contractPriority,
  mintSlotGrant,
  readAgentToken,
  type Signer,
  type Verifier,
} from '@writ/identity';
import {
  type AgentKey,
  type AgentRef,
  isWritError,
  Priority,
  UnavailableError,
} from '@writ/kernel';
import { type CallContext, partialRoute, type Route } from '@writ/rpc';
import { AGENT, agentKey, TENANT } from './delivery.ts';
import type { FaultSwitches } from './fault-switches.ts';

/** An agent whose slot changed. */
interface Moved {
  readonly tenant: string;
  readonly runId: string;
  readonly change: { readonly agent: AgentRef };
}

type SlotStateName = 'ACTIVE' | 'PAUSED' | 'WAITING' | 'RELEASED';

const INTENTS = new Map<number, string>(
  Object.entries(RenewIntent).map(([name, intent]) => [intent, name]),
);

/** Grants slots to all agents unless configured otherwise, and records requests. */
export class FakeSlots {
  /**
   * One line for each renewal with a valid token and a current epoch: agent, intent and epoch, such as `run-1 RUN 1`.
   * The agent is the run id for the root agent, otherwise `run/instance`.
   */
  readonly renewals: string[] = [];
  /** One line for each line of `renewals` with the intent SUSPEND: agent and signals, such as `run-1 approval:op-4`. */
  readonly waits: string[] = [];
  /** Number of agents in each call. */
  readonly batches: number[] = [];
  /** Watched tenants. */
  readonly watched: string[] = [];
  /** Number of calls, including failed ones. */
  calls = 0;
  isDown = false;
  /** Rejected epochs, which arrived after a higher one. */
  readonly staleEpochs: bigint[] = [];
  readonly #faults: FaultSwitches;
  readonly #states = new Map<string, SlotStateName>();
  readonly #epochs = new Map<string, bigint>();
  readonly #watchers = new Set<(moved: Moved) => void>();
  #signer: Signer | undefined;
  #verifier: Verifier | undefined;

  constructor(faults: FaultSwitches) {
    this.#faults = faults;
  }

  /** Sets the keys that sign grants and verify tokens. */
  equip(signer: Signer, verifier: Verifier): void {
    this.#signer = signer;
    this.#verifier = verifier;
  }

  /**
   * Sets the slot state of an agent (the root when only its run is given), and notifies watchers if `hint` is set.
   */
  set(runId: string, state: SlotStateName, { hint = false } = {}): void {
    this.#states.set(runId, state);
    if (!hint) return;
    const [run = '', instance] = runId.split('/');
    const agent = instance === undefined ? AGENT : { name: instance, instance };
    for (const notify of this.#watchers) notify({ tenant: TENANT, runId: run, change: { agent } });
  }

  /** Simulates a lease of the agent by another worker under this epoch. */
  sawEpoch(runId: string, epoch: bigint): void {
    this.#epochs.set(runId, epoch);
  }

  /** Mints a slot grant. */
  grant({ runId, instance, epoch }: Omit<AgentKey, 'tenant'> & { readonly epoch: bigint }) {
    if (this.#signer === undefined) throw new Error('No keys.');
    const priority = contractPriority(Priority.NORMAL);
    const claims = { tenant: TENANT, runId, agentInstance: instance, priority, epoch };
    return mintSlotGrant(this.#signer, claims);
  }

  routes(): Route[] {
    const slots = this;
    return [
      partialRoute(SpawnBudgetService, {
        renew: async ({ agents }, call) => {
          this.calls += 1;
          if (this.isDown) throw new UnavailableError('UNAVAILABLE', 'spawn-budget is down.');
          this.batches.push(agents.length);
          return { agents: await Promise.all(agents.map((entry) => this.#renew(entry, call))) };
        },
        async *watchPauses({ tenants }, { signal }) {
          slots.watched.push(...tenants);
          const moves: Moved[] = [];
          let wake: () => void = () => undefined;
          const notify = (moved: Moved) => {
            moves.push(moved);
            wake();
          };
          slots.#watchers.add(notify);
          signal.addEventListener('abort', () => wake());
          while (!signal.aborted) {
            yield* moves.splice(0);
            if (signal.aborted) break;
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
          slots.#watchers.delete(notify);
        },
      }),
    ];
  }

  async #renew({ agentToken, epoch, intent, waitingFor }: AgentRenewal, { caller }: CallContext) {
    if (this.#signer === undefined || this.#verifier === undefined) throw new Error('No keys.');
    try {
      const audience = 'spawn-budget';
      const agent = await readAgentToken(this.#verifier, agentToken, { audience, caller });
      const { runId } = agent;
      const { instance } = agent.agent;
      const key = agentKey(runId, instance);
      if (epoch < (this.#epochs.get(key) ?? 0n)) {
        this.staleEpochs.push(epoch);
        return { refusal: 'STALE_EPOCH' };
      }
      this.#epochs.set(key, epoch);
      const name = INTENTS.get(intent) ?? 'NONE';
      this.renewals.push(`${key} ${name} ${epoch}`);
      if (intent === RenewIntent.SUSPEND) this.waits.push(`${key} ${waitingFor}`);
      await this.#faults.pass(`before renew ${name}`);
      const current = this.#states.get(key) ?? 'ACTIVE';
      const state = SlotState[current];
      if (current !== 'ACTIVE') return { runId, slot: { state } };
      if (intent === RenewIntent.SUSPEND) return { runId, slot: { state: SlotState.SUSPENDED } };
      const { token, expireTime } = await this.grant({ runId, instance, epoch });
      const grantExpireTime = timestampFromDate(expireTime);
      return { runId, slot: { state, grant: token, grantExpireTime } };
    } catch (error) {
      if (isWritError(error)) return { refusal: error.reason };
      throw error;
    }
  }
}
