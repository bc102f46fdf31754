import { wordOf } from '@writ/client/display';
import { type Slot, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { GetPoolResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { type Column, table } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';

const COLUMNS: readonly Column<Slot>[] = [
  { heading: 'AGENT', text: ({ agent }) => `${agent?.name ?? ''} (${agent?.instance ?? ''})` },
  { heading: 'STATE', text: ({ state }) => wordOf(SlotState, state) },
  { heading: 'PRIORITY', text: ({ priority }) => wordOf(Priority, priority) },
  { heading: 'WAITS FOR', text: ({ waitingFor }) => waitingFor.join(', ') },
  { heading: 'SINCE', text: ({ acquireTime, waitTime }) => timeText(waitTime ?? acquireTime) },
];

/** `writ pools`: who holds, lost or waits for a slot of a run (SB-5, PE-1). */
export const poolCommands: CommandGroup = (program, io, done) => {
  const pools = program.command('pools').description('Slots of the agents of a run.');

  withFormat(withClientOptions(pools.command('get')))
    .argument('<run-id>', 'the run')
    .description('Show which agents hold a slot, lost it, or wait for one.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const value = await openClient(options, io).usage.getPool({ runId });
      const { holders = [], paused = [], waiting = [] } = value.pool ?? {};
      const slots = [...holders, ...paused, ...waiting];
      show(io, options, { schema: GetPoolResponseSchema, value }, () => table(COLUMNS, slots));
      if (slots.length === 0) io.warn('No agent of this run has a slot or waits for one.');
      done(EXIT.success);
    });
};
