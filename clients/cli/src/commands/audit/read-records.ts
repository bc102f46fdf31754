import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { recordFactsText } from '@writ/client/display';
import {
  type AuditRecord,
  AuditRecordSchema,
  ListAuditRecordsResponseSchema,
} from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, fields, table } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';
import { recordNumber } from './record-number.ts';

/** Options of `writ audit list`. */
export interface ListOptions extends ClientOptions, FormatOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly kind?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly limit: number;
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { heading: 'RECORD', isNumber: true, text: ({ sequence }) => String(sequence) },
  { heading: 'TIME', text: ({ recordTime }) => timeText(recordTime) },
  { heading: 'KIND', text: ({ kind }) => kind },
  { heading: 'RUN', text: ({ runId }) => runId },
  { heading: 'FACTS', isWhole: true, text: ({ canonicalJson }) => recordFactsText(canonicalJson) },
];

/** Prints records of the tenant, in the order of the chain. */
export async function listRecords(options: ListOptions, io: CliIo): Promise<Exit> {
  const { audit } = openClient(options, io);
  const { run: runId = '', agent: agentInstance = '', kind = '', since, until, limit } = options;
  const filter = {
    ...{ runId, agentInstance, kind },
    ...(since && { startTime: timestampFromDate(since) }),
    ...(until && { endTime: timestampFromDate(until) }),
  };
  const { rows, more } = await readRows(limit, async (page) => {
    const { records, nextPageToken } = await audit.listAuditRecords({ ...filter, ...page });
    return { rows: records, nextPageToken };
  });
  const value = create(ListAuditRecordsResponseSchema, { records: rows });
  show(io, options, { schema: ListAuditRecordsResponseSchema, value }, () => table(COLUMNS, rows));
  if (rows.length === 0) io.warn('No records.');
  if (more) io.warn(`More records exist: raise --limit above ${limit}.`);
  return EXIT.success;
}

/**
 * Prints every fact of one record.
 * @throws InvalidRequestError INVALID_OPTION, AUDIT_RECORD_NOT_FOUND
 */
export async function showRecord(
  number: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const sequence = recordNumber(number, 'The record');
  const { records } = await openClient(options, io).audit.listAuditRecords({
    afterSequence: BigInt(Math.max(0, sequence - 1)),
    pageSize: 1,
  });
  const record = records.find((one) => one.sequence === BigInt(sequence));
  if (record === undefined)
    throw new InvalidRequestError('AUDIT_RECORD_NOT_FOUND', `Record ${sequence} does not exist.`);
  show(io, options, { schema: AuditRecordSchema, value: record }, () =>
    fields({
      record: String(record.sequence),
      ...Object.fromEntries(
        Object.entries(factsOf(record)).map(([name, fact]) => [name, text(fact)]),
      ),
      hash: record.hash,
      'previous hash': record.previousHash,
    }),
  );
  return EXIT.success;
}

function factsOf({ canonicalJson }: AuditRecord): Record<string, unknown> {
  return JSON.parse(canonicalJson) as Record<string, unknown>;
}

function text(fact: unknown): string {
  return typeof fact === 'string' ? fact : JSON.stringify(fact);
}
