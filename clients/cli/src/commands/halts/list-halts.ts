import { create } from '@bufbuild/protobuf';
import { ListHaltsResponseSchema } from '@writ/contracts/writ/control/v1/control_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { haltLines } from './halt-text.ts';

/** Options of `writ halts list`. */
export interface ListOptions extends ClientOptions, FormatOptions {
  readonly inForce?: boolean;
}

/** Prints the halts, newest first. */
export async function listHalts(options: ListOptions, io: CliIo): Promise<Exit> {
  const { control } = openClient(options, io);
  const inForceOnly = options.inForce === true;
  const { rows } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
    const answer = await control.listHalts({ inForceOnly, ...page });
    return { rows: answer.halts, nextPageToken: answer.nextPageToken };
  });
  const value = create(ListHaltsResponseSchema, { halts: rows });
  show(io, options, { schema: ListHaltsResponseSchema, value }, () => rows.flatMap(haltLines));
  if (rows.length === 0) io.warn('No halts.');
  return EXIT.success;
}
