import { RunSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { IssueRunTokenResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { fields } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';
import { runFields } from './run-text.ts';

/** `writ runs token|close`: runs of agents of kind `external` (AP-1). */
export const externalRunCommands: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('token')))
    .argument('<run-id>', 'the run')
    .description('Issue a token with which a program acts as the external agent of a run.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const value = await openClient(options, io).runs.issueRunToken({ runId });
      show(io, options, { schema: IssueRunTokenResponseSchema, value }, () =>
        fields({
          token: value.token,
          expires: timeText(value.expireTime),
          'base URL of models': value.modelBaseUrl,
          'URL of MCP': value.mcpUrl,
        }),
      );
      done(EXIT.success);
    });

  withFormat(withClientOptions(runs.command('close')))
    .argument('<run-id>', 'the run')
    .description('End the run of an external agent with `closed`: its program is done.')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(
      async (
        runId: string,
        options: ClientOptions & FormatOptions & { readonly requestId?: string },
      ) => {
        const { requestId = newId('req') } = options;
        const { run } = await openClient(options, io).runs.closeRun({ requestId, runId });
        if (run !== undefined)
          show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
        done(EXIT.success);
      },
    );
};
