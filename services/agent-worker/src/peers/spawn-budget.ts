import { timestampMs } from '@bufbuild/protobuf/wkt';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  type AgentSlot,
  RenewIntent,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import type { AgentKey } from '@writ/kernel';
import { DataLossError } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { OwnTime } from '../domain/agent/peer-time.ts';
import type { SlotAnswer, SlotIntent, SlotRenewal, SlotStatus } from '../domain/agent/slot.ts';

/** Client of spawn-budget. */
export interface SpawnBudgetPeer {
  /**
   * Renews the slots of agents, which may belong to different runs, in as few calls as possible. Returns the results in
   * the order of `agents` (SB-8).
   */
  renew(agents: readonly SlotRenewal[], options: CallOptions): Promise<readonly SlotAnswer[]>;
  /** Streams the agents of these tenants whose slot changed; best effort (SB-4). */
  watchPauses(tenants: readonly string[], options: CallOptions): AsyncIterable<AgentKey>;
  close(): void;
}

/** Maximum number of agents or tenants per request. */
const MAX_IN_REQUEST = 1_000;

const INTENTS = {
  run: RenewIntent.RUN,
  suspend: RenewIntent.SUSPEND,
  park: RenewIntent.PARK,
} as const satisfies Record<SlotIntent, RenewIntent>;

const STATES: ReadonlyMap<SlotState, SlotStatus> = new Map([
  [SlotState.ACTIVE, 'active'],
  [SlotState.SUSPENDED, 'suspended'],
  [SlotState.PAUSED, 'paused'],
  [SlotState.WAITING, 'waiting'],
  [SlotState.RELEASED, 'released'],
]);

/** Creates a gRPC client of spawn-budget. */
export function createSpawnBudgetPeer(
  options: RpcClientOptions,
  ownTime: OwnTime,
): SpawnBudgetPeer {
  const client = createRpcClient(SpawnBudgetService, options);
  return {
    async renew(agents, call) {
      const answers: SlotAnswer[] = [];
      for (let from = 0; from < agents.length; from += MAX_IN_REQUEST) {
        const part = agents.slice(from, from + MAX_IN_REQUEST);
        const renewals = part.map(({ intent, waitingFor = [], ...rest }) => ({
          ...rest,
          waitingFor: [...waitingFor],
          intent: INTENTS[intent],
        }));
        const answer = await client.renew({ agents: renewals }, call);
        if (answer.agents.length !== part.length) throw malformed('an answer for each agent');
        answers.push(...answer.agents.map((slot) => answerFrom(slot, ownTime)));
      }
      return answers;
    },
    async *watchPauses(tenants, call) {
      const watched = tenants.slice(-MAX_IN_REQUEST);
      for await (const event of client.watchPauses({ tenants: watched }, call)) {
        const { tenant, runId, change } = event;
        yield { tenant, runId, instance: change?.agent?.instance ?? '' };
      }
    },
    close: () => client.close(),
  };
}

function answerFrom({ slot, refusal }: AgentSlot, ownTime: OwnTime): SlotAnswer {
  if (refusal !== '') return { refusal };
  const state = slot && STATES.get(slot.state);
  if (slot === undefined || state === undefined) throw malformed('the state of a slot');
  const { grant, grantExpireTime } = slot;
  const grantExpiresAt = grantExpireTime === undefined ? 0 : ownTime(timestampMs(grantExpireTime));
  return { state, grant, grantExpiresAt };
}

function malformed(what: string): DataLossError {
  return new DataLossError('INVALID_SLOT', `The response of spawn-budget lacks ${what}.`);
}
