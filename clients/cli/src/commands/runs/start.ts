import type { MessageInitShape } from '@bufbuild/protobuf';
import { RunSchema } from '@writ/contracts/writ/run/v1/run_pb';
import type { StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { budgetOf } from '../../output/budget.ts';
import type { BudgetOptions } from '../../output/budget-options.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { followRun } from './follow.ts';

/** Options of `writ run`. */
export interface StartOptions extends ClientOptions, FormatOptions, BudgetOptions {
  readonly data?: string;
  readonly session?: string;
  readonly model?: string;
  readonly label?: readonly string[];
  readonly detach?: boolean;
  readonly requestId?: string;
}

/**
 * Starts a run, and follows it to its end unless it is detached.
 * @throws InvalidRequestError INVALID_OPTION, INVALID_AMOUNT, and what openClient throws
 */
export async function startRun(
  agent: string,
  goal: string,
  options: StartOptions,
  io: CliIo,
): Promise<Exit> {
  const client = openClient(options, io);
  const { run } = await client.runs.startRun(requestOf(agent, goal, options));
  if (run === undefined) throw new Error('StartRun returned no run.');
  if (!options.detach) return await followRun(run, client, options, io);
  show(io, options, { schema: RunSchema, value: run }, () => [run.runId]);
  return EXIT.success;
}

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

/** Splits `key=value` at the first `=`; the value is empty if there is no `=`. */
function splitPair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}
