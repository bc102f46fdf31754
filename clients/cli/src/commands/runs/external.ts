import { RunSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { IssueRunTokenResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { fields } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';
import { runFields } from './run-text.ts';

/** Options of `writ runs close`. */
export interface CloseOptions extends ClientOptions, FormatOptions {
  readonly requestId?: string;
}

/** Issues a token with which a program acts as the external agent of a run. */
export async function issueRunToken(
  runId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const value = await openClient(options, io).runs.issueRunToken({ runId });
  show(io, options, { schema: IssueRunTokenResponseSchema, value }, () =>
    fields({
      token: value.token,
      expires: timeText(value.expireTime),
      'base URL of models': value.modelBaseUrl,
      'URL of MCP': value.mcpUrl,
    }),
  );
  return EXIT.success;
}

/** Ends the run of an external agent whose program has finished. */
export async function closeRun(runId: string, options: CloseOptions, io: CliIo): Promise<Exit> {
  const { requestId = newId('req') } = options;
  const { run } = await openClient(options, io).runs.closeRun({ requestId, runId });
  if (run !== undefined) show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
  return EXIT.success;
}
