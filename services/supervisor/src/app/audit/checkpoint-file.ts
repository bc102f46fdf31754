import { type FileHandle, open } from 'node:fs/promises';
import { formatLine, parseLine } from '@writ/audit';
import { parseCheckpoint } from '@writ/identity';
import { InvalidRequestError, isClockError, UnauthenticatedError } from '@writ/kernel';
import type { CheckpointRow } from '../../store/audit/checkpoints.ts';
import type { ChainGuard } from './chain-guard.ts';

/** A line of the file. */
interface FileLine {
  /** From 1. */
  readonly number: number;
  readonly signed: string;
  /** Number of records that the checkpoint covers. */
  readonly count: number;
}

/**
 * The file outside the database to which every signed checkpoint is appended (WRIT_AUDIT_CHECKPOINT_FILE), one JSON
 * line each, as in an export (SV-8). `writ audit verify --checkpoint` reads it.
 */
export class CheckpointFile {
  readonly #file: FileHandle;
  /** Number of records that the last checkpoint of each tenant covers. */
  readonly #last: Map<string, number>;
  /** Size of the file before a failed append; undefined after a successful append. */
  #sizeBefore: number | undefined;

  private constructor(file: FileHandle, last: Map<string, number>) {
    this.#file = file;
    this.#last = last;
  }

  /**
   * Opens the file. Creates it if it does not exist, with access for its owner only (mode 0600). Removes a last line
   * that a crash left incomplete. For each tenant, only the checkpoint that covers the most records is verified and
   * recorded in `chainGuard`, because its records include those of the other checkpoints.
   * @throws InvalidRequestError INVALID_FILE: the file cannot be written, a line is not a checkpoint, or a checkpoint
   *   is not valid; UnauthenticatedError TOKEN_INVALID: a checkpoint was issued in the future; UnavailableError
   *   KEYS_UNAVAILABLE
   */
  static async open(
    path: string,
    chainGuard: Pick<ChainGuard, 'rememberSigned'>,
  ): Promise<CheckpointFile> {
    const file = await open(path, 'a+', 0o600).catch((error: unknown) => {
      throw unusable(path, 'it cannot be opened for writing', error);
    });
    try {
      const text = await file.readFile('utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      if (whole !== text) await file.truncate(Buffer.byteLength(whole));
      const last = new Map<string, number>();
      for (const [tenant, { number, signed, count }] of await longestOf(path, whole)) {
        await readLine(path, number, () => chainGuard.rememberSigned(signed));
        last.set(tenant, count);
      }
      return new CheckpointFile(file, last);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Number of records that the last checkpoint of a tenant in the file covers; zero without one. */
  lastCount(tenant: string): number {
    return this.#last.get(tenant) ?? 0;
  }

  /** Appends checkpoints of a tenant, and resolves when they are on disk. */
  async append(tenant: string, checkpoints: readonly CheckpointRow[]): Promise<void> {
    const last = checkpoints.at(-1);
    if (last === undefined) return;
    const lines = checkpoints.map(
      ({ signed }) => `${formatLine({ type: 'checkpoint', signed })}\n`,
    );
    // Removes the lines that a failed append has left, possibly incomplete.
    if (this.#sizeBefore !== undefined) await this.#file.truncate(this.#sizeBefore);
    this.#sizeBefore = (await this.#file.stat()).size;
    await this.#file.appendFile(lines.join(''));
    await this.#file.sync();
    this.#sizeBefore = undefined;
    this.#last.set(tenant, last.count);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/** Returns, for each tenant, the checkpoint that covers the most records, without verifying it. */
async function longestOf(path: string, text: string): Promise<ReadonlyMap<string, FileLine>> {
  const longest = new Map<string, FileLine>();
  for (const [index, content] of text.split('\n').slice(0, -1).entries()) {
    const number = index + 1;
    const line = parseLine(content);
    if (typeof line === 'string' || line.type !== 'checkpoint') {
      throw unusable(path, `line ${number} is not a checkpoint`);
    }
    const { signed } = line;
    const claims = await readLine(path, number, () => parseCheckpoint(signed));
    const count = Number(claims.count);
    if (count < (longest.get(claims.tenant)?.count ?? 0)) continue;
    longest.set(claims.tenant, { number, signed, count });
  }
  return longest;
}

/** Calls `read`; if it fails because the checkpoint is not valid, throws an error that contains the line number. */
async function readLine<T>(path: string, number: number, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof UnauthenticatedError) || isClockError(error)) throw error;
    throw unusable(path, `line ${number} is not a valid checkpoint`, error);
  }
}

function unusable(path: string, why: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The checkpoint file ${path} cannot be used: ${why}; correct WRIT_AUDIT_CHECKPOINT_FILE, or move the file away.`,
    { file: path },
    { cause },
  );
}
