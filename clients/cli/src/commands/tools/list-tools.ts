import { create } from '@bufbuild/protobuf';
import { wordOf } from '@writ/client/display';
import { ListToolsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { SideEffect, type ToolDefinition } from '@writ/contracts/writ/tool/v1/tool_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';

const COLUMNS: readonly Column<ToolDefinition>[] = [
  { heading: 'TOOL', text: ({ name }) => name },
  { heading: 'ARGUMENTS', text: argumentsText },
  { heading: 'EFFECT', text: ({ sideEffect }) => wordOf(SideEffect, sideEffect) },
  { heading: 'RISK', text: ({ risk }) => String(risk), isNumber: true },
  { heading: 'SOURCE', text: ({ source }) => source },
  { heading: 'DESCRIPTION', text: ({ description }) => description },
];

/** Prints the tools that the gateway registers for the tenant. */
export async function listTools(options: ClientOptions & FormatOptions, io: CliIo): Promise<Exit> {
  const { runs } = openClient(options, io);
  const { rows: tools } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
    const { tools: rows, nextPageToken } = await runs.listTools(page);
    return { rows, nextPageToken };
  });
  const value = create(ListToolsResponseSchema, { tools });
  show(io, options, { schema: ListToolsResponseSchema, value }, () => table(COLUMNS, tools));
  if (tools.length === 0) io.warn('No tools.');
  return EXIT.success;
}

/** Names of the arguments; optional arguments end with `?`. */
function argumentsText({ inputSchemaJson }: ToolDefinition): string {
  const schema = JSON.parse(inputSchemaJson || '{}') as {
    readonly properties?: object;
    readonly required?: readonly string[];
  };
  const isRequired = new Set(schema.required);
  return Object.keys(schema.properties ?? {})
    .map((name) => (isRequired.has(name) ? name : `${name}?`))
    .join(', ');
}
