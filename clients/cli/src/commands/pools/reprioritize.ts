import { wordOf } from '@writ/client/display';
import { ReprioritizeResponseSchema } from '@writ/contracts/writ/control/v1/control_service_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { newId, type PriorityName } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';

/** Options of `writ pools reprioritize`. */
export interface ReprioritizeOptions extends ClientOptions, FormatOptions {
  readonly agent?: string;
  readonly tenant?: string;
  readonly requestId?: string;
}

/** Changes the priority of a live agent, and prints its slot. */
export async function reprioritize(
  runId: string,
  name: Lowercase<PriorityName>,
  options: ReprioritizeOptions,
  io: CliIo,
): Promise<Exit> {
  const { requestId = newId('req'), agent: agentInstance = '', tenant = '' } = options;
  const priority = Priority[name.toUpperCase() as PriorityName];
  const value = await openClient(options, io).control.reprioritize({
    ...{ requestId, tenant, runId, agentInstance, priority },
  });
  const { agent, state = SlotState.UNSPECIFIED } = value.slot ?? {};
  show(io, options, { schema: ReprioritizeResponseSchema, value }, () => [
    `${agent?.name ?? ''} (${agent?.instance ?? ''}) has the priority ${name}, and is ${wordOf(SlotState, state)}.`,
    ...value.changes.map(
      (change) =>
        `${change.agent?.name ?? ''} (${change.agent?.instance ?? ''}) is ${wordOf(SlotState, change.to)}.`,
    ),
  ]);
  return EXIT.success;
}
