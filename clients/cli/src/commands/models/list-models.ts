import type { ModelInfo } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ListModelsResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
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

/** Prints the models that agents can use, with their prices. */
export async function listModels(options: ClientOptions & FormatOptions, io: CliIo): Promise<Exit> {
  const value = await openClient(options, io).usage.listModels({});
  show(io, options, { schema: ListModelsResponseSchema, value }, () =>
    table(COLUMNS, value.models),
  );
  return EXIT.success;
}

function priceText(nanoUsdPerMillion: bigint | undefined): string {
  return nanoUsdPerMillion === undefined ? 'unknown' : usdText(nanoUsdPerMillion);
}
