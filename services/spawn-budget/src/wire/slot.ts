import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type SlotChangeSchema,
  type SlotSchema,
  SlotState,
} from '@writ/contracts/writ/spawn/v1/pool_pb';
import type { SignedToken } from '@writ/identity';
import { contractPriority } from '@writ/identity';
import type { Member, SlotChange, SlotState as State } from '../domain/pool/pool.ts';

const STATES: Readonly<Record<State, SlotState>> = {
  active: SlotState.ACTIVE,
  suspended: SlotState.SUSPENDED,
  paused: SlotState.PAUSED,
  waiting: SlotState.WAITING,
  released: SlotState.RELEASED,
};

/** The message of an agent's slot, with the grant if there is one. */
export function slotMessage(
  member: Member,
  grant?: Pick<SignedToken, 'token' | 'expireTime'>,
): MessageInitShape<typeof SlotSchema> {
  const { agent, state, priority, expiresAt, acquiredAt, wait } = member;
  return {
    agent,
    state: STATES[state],
    priority: contractPriority(priority),
    ...(grant && { grant: grant.token, grantExpireTime: timestampFromDate(grant.expireTime) }),
    // A suspended agent has no lease; its slot expires at the run's deadline.
    ...(state === 'active' &&
      expiresAt !== undefined && { leaseExpireTime: timestampFromMs(expiresAt) }),
    acquireTime: timestampFromMs(acquiredAt),
    ...(wait && {
      waitTime: timestampFromMs(wait.since),
      waitingFor: [...wait.signals],
      waitSequence: BigInt(wait.sequence),
    }),
  };
}

/** The message of a slot change. */
export function changeMessage({
  agent,
  from,
  to,
  becauseOf,
}: SlotChange): MessageInitShape<typeof SlotChangeSchema> {
  return { agent, from: STATES[from], to: STATES[to], ...(becauseOf && { becauseOf }) };
}
