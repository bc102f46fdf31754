import { InvalidRequestError } from '@writ/kernel';
import { type LogEntryRow, type LogPosition, logEntries } from '../../store/log-entries.ts';
import type { WorkerReader } from '../../store/worker-store.ts';

/**
 * Maximum size in bytes of the content of an entry, and of the fields and contents of a page with more than one entry
 * (BD-1).
 */
const MAX_BYTES = 1_048_576;

/** Selects which log entries of a run are listed. */
export interface LogRequest {
  readonly tenant: string;
  readonly runId: string;
  /** Empty for all agents. */
  readonly agentInstance: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A log entry, with fields and content as JSON text. */
export interface LogEntry extends LogEntryRow {
  readonly fieldsJson: string;
  /** Empty when the entry has no content or the content is omitted. */
  readonly contentJson: string;
  /** Whether the content is omitted because it is too large. */
  readonly isOmitted: boolean;
}

/** A page of a run's log. */
export interface LogEntries {
  readonly entries: readonly LogEntry[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

/**
 * Returns a page of a run's log entries, oldest first. The page has fewer than `pageSize` entries when more entries
 * would exceed the size limit.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export async function listLogEntries(db: WorkerReader, request: LogRequest): Promise<LogEntries> {
  const { tenant, runId, agentInstance: instance, pageSize, pageToken } = request;
  const after = pageToken === '' ? undefined : positionFrom(pageToken);
  const rows = await logEntries(db, { tenant, runId, instance, after, limit: pageSize + 1 });
  const entries: LogEntry[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, pageSize)) {
    const entry = entryOf(row);
    bytes += Buffer.byteLength(entry.contentJson) + Buffer.byteLength(entry.fieldsJson);
    if (entries.length > 0 && bytes > MAX_BYTES) break;
    entries.push(entry);
  }
  const last = entries.at(-1);
  const hasMore = last !== undefined && entries.length < rows.length;
  return { entries, nextPageToken: hasMore ? tokenOf(last) : '' };
}

function entryOf(row: LogEntryRow): LogEntry {
  const json = row.content === undefined ? '' : JSON.stringify(row.content);
  const isOmitted = Buffer.byteLength(json) > MAX_BYTES;
  const fieldsJson = JSON.stringify(row.fields);
  return { ...row, fieldsJson, contentJson: isOmitted ? '' : json, isOmitted };
}

function tokenOf({ recordedAt, instance, branch, position }: LogPosition): string {
  const parts = [recordedAt.toISOString(), instance, branch, position];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function positionFrom(token: string): LogPosition {
  const [time, instance, branch, position] = parse(token);
  const recordedAt = new Date(typeof time === 'string' ? time : Number.NaN);
  const isValid =
    !Number.isNaN(recordedAt.getTime()) &&
    typeof instance === 'string' &&
    typeof branch === 'string' &&
    typeof position === 'number' &&
    Number.isSafeInteger(position);
  if (isValid) return { recordedAt, instance, branch, position };
  throw badToken();
}

function parse(token: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    return Array.isArray(value) ? value : [];
  } catch {
    throw badToken();
  }
}

function badToken(): InvalidRequestError {
  return new InvalidRequestError('INVALID_PAGE_TOKEN', 'page_token is malformed.', {
    field: 'page_token',
  });
}
