import { create } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { haltStateText, scopeText } from '@writ/client/display';
import {
  type Halt,
  HaltSchema,
  ListHaltsResponseSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { type ScopeOptions, scopeFrom } from './scope.ts';

interface CreateOptions extends ClientOptions, FormatOptions, ScopeOptions {
  readonly reason: string;
  readonly endRuns?: boolean;
  readonly requestId?: string;
}

interface LiftOptions extends ClientOptions, FormatOptions {
  readonly requestId?: string;
}

/** `writ halts`: the kill switch (SV-9). */
export const haltCommands: CommandGroup = (program, io, done) => {
  const halts = program.command('halts').description('Halts of runs, agents and tenants.');

  withFormat(withClientOptions(halts.command('create')))
    .description('Stop a run, one agent of it, a tenant, or everything.')
    .option('--run <id>', 'a run')
    .option('--agent <instance>', 'one agent of the run that --run names')
    .option('--tenant <tenant>', 'a whole tenant; with --run, the tenant of that run')
    .option('--everything', 'every tenant; needs the role operator')
    .requiredOption('--reason <sentence>', 'the reason, shown to every rejected caller')
    .option('--end-runs', 'end the runs instead of parking their agents')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (options: CreateOptions) => {
      const client = openClient(options, io);
      const scope = await scopeFrom(options, client);
      const { reason, endRuns = false, requestId = newId('req') } = options;
      try {
        const { halt } = await client.control.halt({ requestId, scope, reason, endRuns });
        if (halt !== undefined)
          show(io, options, { schema: HaltSchema, value: halt }, () => linesOf(halt));
        done(EXIT.success);
      } catch (error) {
        if (!isPending(error)) throw error;
        io.warn(error.message);
        io.warn(`Retry with --request-id ${requestId}.`);
        done(EXIT.failure);
      }
    });

  withFormat(withClientOptions(halts.command('lift')))
    .argument('<halt-id>', 'the halt to lift')
    .description('Lift one halt.')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (haltId: string, { requestId = newId('req'), ...options }: LiftOptions) => {
      const { halt } = await openClient(options, io).control.resume({ requestId, haltId });
      if (halt !== undefined)
        show(io, options, { schema: HaltSchema, value: halt }, () => linesOf(halt));
      done(EXIT.success);
    });

  withFormat(withClientOptions(halts.command('list')))
    .description('List halts, newest first.')
    .option('--in-force', 'only halts in force')
    .action(async (options: ClientOptions & FormatOptions & { readonly inForce?: boolean }) => {
      const { control } = openClient(options, io);
      const inForceOnly = options.inForce === true;
      const { rows } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
        const answer = await control.listHalts({ inForceOnly, ...page });
        return { rows: answer.halts, nextPageToken: answer.nextPageToken };
      });
      const value = create(ListHaltsResponseSchema, { halts: rows });
      show(io, options, { schema: ListHaltsResponseSchema, value }, () => rows.flatMap(linesOf));
      if (rows.length === 0) io.warn('No halts.');
      done(EXIT.success);
    });
};

function linesOf(halt: Halt): string[] {
  return [
    haltLine(halt),
    ...halt.inFlight.map(
      (call) =>
        `  still in flight: ${call.runId} ${call.agentInstance} ${call.callId} ${call.target}`,
    ),
  ];
}

function isPending(error: unknown): error is Error & { readonly reason: string } {
  return error instanceof Error && 'reason' in error && error.reason === 'HALT_PENDING';
}

/** A halt in one line: id, state, scope, operator, time and reason. */
function haltLine(halt: Halt): string {
  const at = halt.createTime === undefined ? '' : timestampDate(halt.createTime).toISOString();
  const by = halt.resumedBy === '' ? '' : `, lifted by ${halt.resumedBy}`;
  const ends = halt.endRuns ? ', ends runs' : '';
  return [
    halt.haltId,
    `${haltStateText(halt.state)}${by}`,
    `${scopeText(halt.scope)}${ends}`,
    `by ${halt.orderedBy} at ${at}`,
    halt.reason,
  ].join('  ');
}
