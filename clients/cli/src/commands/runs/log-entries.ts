import { create } from '@bufbuild/protobuf';
import type { LogEntry } from '@writ/contracts/writ/run/v1/run_pb';
import { ListLogEntriesResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';

/** Options of `writ runs logs`. */
export interface LogOptions extends ClientOptions, FormatOptions {
  readonly agent?: string;
  readonly limit: number;
}

const COLUMNS: readonly Column<LogEntry>[] = [
  { heading: 'TIME', text: ({ recordTime }) => timeText(recordTime) },
  { heading: 'AGENT', text: ({ agent }) => agent?.name ?? '' },
  { heading: 'ENTRY', text: ({ message }) => message },
  { heading: 'FIELDS', isWhole: true, text: ({ fieldsJson }) => fieldsJson },
  { heading: 'CONTENT', isWhole: true, text: contentText },
];

function contentText({ contentJson, contentOmitted }: LogEntry): string {
  return contentOmitted ? '(more than 1 MiB)' : contentJson;
}

/** Prints the log entries of a run (AG-4, AG-5). */
export async function listLogEntries(runId: string, options: LogOptions, io: CliIo): Promise<Exit> {
  const { agent: agentInstance = '', limit } = options;
  const { runs } = openClient(options, io);
  const { rows, more } = await readRows(limit, async (page) => {
    const { entries, nextPageToken } = await runs.listLogEntries({ runId, agentInstance, ...page });
    return { rows: entries, nextPageToken };
  });
  const value = create(ListLogEntriesResponseSchema, { entries: rows });
  show(io, options, { schema: ListLogEntriesResponseSchema, value }, () => table(COLUMNS, rows));
  if (rows.length === 0) io.warn('No log entries.');
  if (more) io.warn(`More log entries exist: raise --limit above ${limit}.`);
  return EXIT.success;
}
