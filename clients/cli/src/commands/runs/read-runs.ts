import { create } from '@bufbuild/protobuf';
import { RunSchema, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ListRunsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { enumValues } from '../../output/enum-values.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { table } from '../../output/table.ts';
import { followRun } from './follow.ts';
import { RUN_COLUMNS, runFields } from './run-text.ts';

/** Options of `writ runs list`. */
export interface ListOptions extends ClientOptions, FormatOptions {
  readonly state: readonly string[];
  readonly agent?: string;
  readonly session?: string;
  readonly limit: number;
}

/**
 * Prints runs, newest first.
 * @throws InvalidRequestError INVALID_OPTION, and what openClient throws
 */
export async function listRuns(options: ListOptions, io: CliIo): Promise<Exit> {
  const { limit } = options;
  const filter = {
    states: enumValues<RunState>(RunState, options.state, '--state'),
    agent: options.agent ?? '',
    sessionId: options.session ?? '',
  };
  const { runs: service } = openClient(options, io);
  const { rows, more } = await readRows(limit, async (page) => {
    const { runs: found, nextPageToken } = await service.listRuns({ ...filter, ...page });
    return { rows: found, nextPageToken };
  });
  const value = create(ListRunsResponseSchema, { runs: rows });
  show(io, options, { schema: ListRunsResponseSchema, value }, () => table(RUN_COLUMNS, rows));
  if (rows.length === 0) io.warn('No runs.');
  if (more) io.warn(`More runs exist: raise --limit above ${limit}.`);
  return EXIT.success;
}

/** Prints a run, with its result after the end. */
export async function getRun(
  runId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const { run } = await openClient(options, io).runs.getRun({ runId });
  if (run !== undefined) show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
  return EXIT.success;
}

/** Prints the timeline of a run from its start to its end; succeeds only for status ok. */
export async function watchRun(
  runId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const client = openClient(options, io);
  const { run } = await client.runs.getRun({ runId });
  return run === undefined ? EXIT.success : await followRun(run, client, options, io);
}
