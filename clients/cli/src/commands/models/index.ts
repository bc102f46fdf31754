import type { ModelInfo } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ListModelsResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { type Column, table } from '../../output/table.ts';
import { usdText } from '../../output/text.ts';

const COLUMNS: readonly Column<ModelInfo>[] = [
  { heading: 'MODEL', text: ({ alias }) => alias },
  { heading: 'NAME AT PROVIDER', text: ({ providerModel }) => providerModel },
  {
    heading: 'CONTEXT',
    isNumber: true,
    text: ({ contextWindow }) => (contextWindow === 0n ? 'unknown' : String(contextWindow)),
  },
  {
    heading: 'INPUT PER MILLION',
    isNumber: true,
    text: ({ inputPriceNanoUsdPerMillion: price }) => priceText(price),
  },
  {
    heading: 'OUTPUT PER MILLION',
    isNumber: true,
    text: ({ outputPriceNanoUsdPerMillion: price }) => priceText(price),
  },
];

/** `writ models`: the models that agents can use, with their prices (PE-2). */
export const modelCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('models')))
    .description('List the models that can be used, with their prices.')
    .action(async (options: ClientOptions & FormatOptions) => {
      const value = await openClient(options, io).usage.listModels({});
      show(io, options, { schema: ListModelsResponseSchema, value }, () =>
        table(COLUMNS, value.models),
      );
      done(EXIT.success);
    });
};

function priceText(nanoUsdPerMillion: bigint | undefined): string {
  return nanoUsdPerMillion === undefined ? 'unknown' : usdText(nanoUsdPerMillion);
}
