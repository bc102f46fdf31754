import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withBudget } from '../../output/budget-options.ts';
import { collect } from '../../output/collect.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';
import { limitOf } from '../../output/pages.ts';
import type { CancelOptions, SignalOptions } from './change-run.ts';
import type { CloseOptions } from './external.ts';
import type { LogOptions } from './log-entries.ts';
import type { ListOptions } from './read-runs.ts';
import type { StartOptions } from './start.ts';

/** `writ run`: starts a run and follows it to its end (PE-2). */
export const runCommand: CommandGroup = (program, io, done) => {
  withBudget(withFormat(withClientOptions(program.command('run'))))
    .argument('<agent>', 'the agent, see writ agents')
    .argument('<goal>', 'the task of the agent')
    .description('Start a run and follow it to its end; exit code 0 only for status ok.')
    .option('--data <json>', 'structured input, a JSON object')
    .option('--session <id>', 'a session to continue')
    .option('--model <alias>', 'a model of the agent, see writ models')
    .option('--label <key=value...>', 'labels to find the run by')
    .option('--detach', 'print the run and do not follow it')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (agent: string, goal: string, options: StartOptions) => {
      const { startRun } = await import('./start.ts');
      done(await startRun(agent, goal, options, io));
    });
};

/** `writ runs`: lists, reads, watches, ends and signals runs (PE-2). */
export const runCommands: CommandGroup = (program, io, done) => {
  const runs = program.command('runs').description('Runs of the tenant.');
  readCommands(runs, io, done);
  changeCommands(runs, io, done);
  agentsCommand(runs, io, done);
  logsCommand(runs, io, done);
  externalCommands(runs, io, done);
};

const readCommands: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('list')))
    .description('List runs, newest first.')
    .option('--state <state>', 'only this state; can be repeated', collect, [])
    .option('--agent <name>', 'only runs of this agent')
    .option('--session <id>', 'only runs of this session')
    .option('--limit <count>', 'maximum number of runs to list', limitOf, 50)
    .action(async (options: ListOptions) => {
      const { listRuns } = await import('./read-runs.ts');
      done(await listRuns(options, io));
    });

  withFormat(withClientOptions(runs.command('get')))
    .argument('<run-id>', 'the run')
    .description('Show a run, with its result after the end.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { getRun } = await import('./read-runs.ts');
      done(await getRun(runId, options, io));
    });

  withFormat(withClientOptions(runs.command('watch')))
    .argument('<run-id>', 'the run')
    .description(
      'Print the timeline of a run from its start to its end; exit code 0 only for status ok.',
    )
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { watchRun } = await import('./read-runs.ts');
      done(await watchRun(runId, options, io));
    });
};

const changeCommands: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('cancel')))
    .argument('<run-id>', 'the run')
    .description('End a run with all its agents.')
    .option('--reason <sentence>', 'the reason, for the audit record', '')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (runId: string, options: CancelOptions) => {
      const { cancelRun } = await import('./change-run.ts');
      done(await cancelRun(runId, options, io));
    });

  withFormat(withClientOptions(runs.command('signal')))
    .argument('<run-id>', 'the run')
    .argument('<name>', 'the signal that the agent waits for')
    .argument('[payload]', 'a JSON object', '{}')
    .description('Send a signal to an agent, such as the answer of a person.')
    .option('--agent <instance>', 'the agent; default: the root agent')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (runId: string, name: string, payloadJson: string, options: SignalOptions) => {
      const { signalRun } = await import('./change-run.ts');
      done(await signalRun(runId, { name, payloadJson }, options, io));
    });
};

/** `writ runs agents`: the supervision tree of a run (SUP-1, AP-6). */
const agentsCommand: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('agents')))
    .argument('<run-id>', 'the run')
    .description('List the agents of a run, parents before children.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { listRunAgents } = await import('./agents.ts');
      done(await listRunAgents(runId, options, io));
    });
};

/** `writ runs logs`: lists the entries that agents wrote to the log of a run (AG-4, AG-5). */
const logsCommand: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('logs')))
    .argument('<run-id>', 'the run')
    .description(
      'List the entries that agents wrote to the log of a run, oldest first, with content.',
    )
    .option('--agent <instance>', 'only entries of this agent')
    .option('--limit <count>', 'maximum number of entries to list', limitOf, 50)
    .action(async (runId: string, options: LogOptions) => {
      const { listLogEntries } = await import('./log-entries.ts');
      done(await listLogEntries(runId, options, io));
    });
};

/** `writ runs token|close`: runs of agents of kind `external` (AP-1). */
const externalCommands: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('token')))
    .argument('<run-id>', 'the run')
    .description('Issue a token with which a program acts as the external agent of a run.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { issueRunToken } = await import('./external.ts');
      done(await issueRunToken(runId, options, io));
    });

  withFormat(withClientOptions(runs.command('close')))
    .argument('<run-id>', 'the run')
    .description(
      'End the run of an external agent whose program has finished; the stop reason is `closed`.',
    )
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (runId: string, options: CloseOptions) => {
      const { closeRun } = await import('./external.ts');
      done(await closeRun(runId, options, io));
    });
};
