import { wordOf } from '@writ/client/display';
import { type Slot, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { GetPoolResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';

const COLUMNS: readonly Column<Slot>[] = [
  { heading: 'AGENT', text: ({ agent }) => `${agent?.name ?? ''} (${agent?.instance ?? ''})` },
  { heading: 'STATE', text: ({ state }) => wordOf(SlotState, state) },
  { heading: 'PRIORITY', text: ({ priority }) => wordOf(Priority, priority) },
  { heading: 'WAITS FOR', text: ({ waitingFor }) => waitingFor.join(', ') },
  { heading: 'SINCE', text: ({ acquireTime, waitTime }) => timeText(waitTime ?? acquireTime) },
];

/** Prints which agents of a run hold a slot, lost it, or wait for one. */
export async function getPool(
  runId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const value = await openClient(options, io).usage.getPool({ runId });
  const { holders = [], paused = [], waiting = [] } = value.pool ?? {};
  const slots = [...holders, ...paused, ...waiting];
  show(io, options, { schema: GetPoolResponseSchema, value }, () => table(COLUMNS, slots));
  if (slots.length === 0) io.warn('No agent of this run has a slot or waits for one.');
  return EXIT.success;
}
