import { create } from '@bufbuild/protobuf';
import { RunSchema, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import {
  ListRunsResponseSchema,
  SignalRunResponseSchema,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { addEnum } from '../../output/enum-option.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { limitOf, readRows } from '../../output/pages.ts';
import { table } from '../../output/table.ts';
import { runAgentCommands } from './agents.ts';
import { externalRunCommands } from './external.ts';
import { followRun } from './follow.ts';
import { RUN_COLUMNS, runFields } from './run-text.ts';

interface ListOptions extends ClientOptions, FormatOptions {
  readonly state: readonly RunState[];
  readonly agent?: string;
  readonly session?: string;
  readonly limit: number;
}

interface ChangeOptions extends ClientOptions, FormatOptions {
  readonly requestId?: string;
}

/** `writ runs`: lists, reads, watches, ends and signals runs (PE-2). */
export const runCommands: CommandGroup = (program, io, done) => {
  const runs = program.command('runs').description('Runs of the tenant.');

  withFormat(withClientOptions(runs.command('list')))
    .description('List runs, newest first.')
    .option('--state <state>', 'only this state; can be repeated', addEnum<RunState>(RunState), [])
    .option('--agent <name>', 'only runs of this agent')
    .option('--session <id>', 'only runs of this session')
    .option('--limit <count>', 'most runs to list', limitOf, 50)
    .action(async ({ limit, ...options }: ListOptions) => {
      const { runs: service } = openClient(options, io);
      const filter = {
        states: [...options.state],
        agent: options.agent ?? '',
        sessionId: options.session ?? '',
      };
      const { rows, more } = await readRows(limit, async (page) => {
        const { runs: found, nextPageToken } = await service.listRuns({ ...filter, ...page });
        return { rows: found, nextPageToken };
      });
      const value = create(ListRunsResponseSchema, { runs: rows });
      show(io, options, { schema: ListRunsResponseSchema, value }, () => table(RUN_COLUMNS, rows));
      if (rows.length === 0) io.warn('No runs.');
      if (more) io.warn(`More runs exist: raise --limit above ${limit}.`);
      done(EXIT.success);
    });

  withFormat(withClientOptions(runs.command('get')))
    .argument('<run-id>', 'the run')
    .description('Show a run, with its result after the end.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { run } = await openClient(options, io).runs.getRun({ runId });
      if (run !== undefined)
        show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
      done(EXIT.success);
    });

  withFormat(withClientOptions(runs.command('watch')))
    .argument('<run-id>', 'the run')
    .description(
      'Print the timeline of a run from its start to its end; exit code 0 only for status ok.',
    )
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const client = openClient(options, io);
      const { run } = await client.runs.getRun({ runId });
      if (run !== undefined) done(await followRun(run, client, options, io));
    });

  withFormat(withClientOptions(runs.command('cancel')))
    .argument('<run-id>', 'the run')
    .description('End a run with all its agents.')
    .option('--reason <sentence>', 'the reason, for the audit record', '')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (runId: string, options: ChangeOptions & { readonly reason: string }) => {
      const { requestId = newId('req'), reason } = options;
      const { run } = await openClient(options, io).runs.cancelRun({ requestId, runId, reason });
      if (run !== undefined)
        show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
      done(EXIT.success);
    });

  withFormat(withClientOptions(runs.command('signal')))
    .argument('<run-id>', 'the run')
    .argument('<name>', 'the signal that the agent waits for')
    .argument('[payload]', 'a JSON object', '{}')
    .description('Send a signal to an agent, such as the answer of a person.')
    .option('--agent <instance>', 'the agent; default: the root')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(
      async (
        runId: string,
        name: string,
        payloadJson: string,
        options: ChangeOptions & { readonly agent?: string },
      ) => {
        const { requestId = newId('req'), agent: agentInstance = '' } = options;
        const value = await openClient(options, io).runs.signalRun({
          ...{ requestId, runId, agentInstance, name, payloadJson },
        });
        show(io, options, { schema: SignalRunResponseSchema, value }, () => [
          value.accepted ? `Signal ${name} is accepted.` : `Signal ${name} was accepted before.`,
        ]);
        done(EXIT.success);
      },
    );

  runAgentCommands(runs, io, done);
  externalRunCommands(runs, io, done);
};
