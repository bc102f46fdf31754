import type { MessageInitShape } from '@bufbuild/protobuf';
import { RunSchema } from '@writ/contracts/writ/run/v1/run_pb';
import type { StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type BudgetOptions, budgetOf, withBudget } from '../../output/budget.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { followRun } from './follow.ts';

interface StartOptions extends ClientOptions, FormatOptions, BudgetOptions {
  readonly data?: string;
  readonly session?: string;
  readonly model?: string;
  readonly label?: readonly string[];
  readonly detach?: boolean;
  readonly requestId?: string;
}

/** `writ run`: starts a run and follows it to its end (PE-2). */
export const runCommand: CommandGroup = (program, io, done) => {
  withBudget(withFormat(withClientOptions(program.command('run'))))
    .argument('<agent>', 'the agent, see writ agents')
    .argument('<goal>', 'its task')
    .description('Start a run and follow it to its end; exit code 0 only for status ok.')
    .option('--data <json>', 'structured input, a JSON object')
    .option('--session <id>', 'a session to continue')
    .option('--model <alias>', 'a model of the agent, see writ models')
    .option('--label <key=value...>', 'labels to find the run by')
    .option('--detach', 'print the run and do not follow it')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (agent: string, goal: string, options: StartOptions) => {
      const client = openClient(options, io);
      const { run } = await client.runs.startRun(requestOf(agent, goal, options));
      if (run === undefined) throw new Error('StartRun returned no run.');
      if (!options.detach) return done(await followRun(run, client, options, io));
      show(io, options, { schema: RunSchema, value: run }, () => [run.runId]);
      done(EXIT.success);
    });
};

function requestOf(
  agent: string,
  goal: string,
  options: StartOptions,
): MessageInitShape<typeof StartRunRequestSchema> {
  const { requestId = newId('req'), data = '', session = '', model = '', label = [] } = options;
  const runBudget = budgetOf(options);
  return {
    requestId,
    agent,
    goal,
    dataJson: data,
    sessionId: session,
    model,
    labels: Object.fromEntries(label.map((pair) => splitPair(pair))),
    ...(runBudget && { runBudget }),
  };
}

/** Splits `key=value` at the first `=`; without one the value is empty. */
function splitPair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}
