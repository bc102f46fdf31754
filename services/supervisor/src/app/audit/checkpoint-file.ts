import { type FileHandle, open } from 'node:fs/promises';
import { formatLine, parseLine } from '@writ/audit';
import { readCheckpoint, type Verifier } from '@writ/identity';
import { InvalidRequestError, isClockError, UnauthenticatedError } from '@writ/kernel';
import type { CheckpointRow } from '../../store/audit/checkpoints.ts';

/**
 * The file outside the database to which every signed checkpoint is appended (WRIT_AUDIT_CHECKPOINT_FILE), one JSON
 * line each, as in an export (SV-8). `writ audit verify --checkpoint` reads it.
 */
export class CheckpointFile {
  readonly #file: FileHandle;
  readonly #last: Map<string, number>;
  /** The size before an append that failed; undefined after one that succeeded. */
  #sizeBefore: number | undefined;
  /** The checkpoints of the file when it was opened. */
  readonly signed: readonly string[];

  private constructor(file: FileHandle, last: Map<string, number>, signed: readonly string[]) {
    this.#file = file;
    this.#last = last;
    this.signed = signed;
  }

  /**
   * Opens the file. Creates it if it does not exist, with access for its owner only (mode 0600). Removes a last line
   * that a crash left incomplete.
   * @throws InvalidRequestError INVALID_FILE: it cannot be written, or has a line that is not a valid checkpoint;
   *   UnauthenticatedError TOKEN_INVALID: a checkpoint is of the future; UnavailableError KEYS_UNAVAILABLE
   */
  static async open(path: string, verifier: Verifier): Promise<CheckpointFile> {
    const file = await open(path, 'a+', 0o600).catch((error: unknown) => {
      throw unusable(path, 'it cannot be opened for writing', error);
    });
    try {
      const text = await file.readFile('utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      if (whole !== text) await file.truncate(Buffer.byteLength(whole));
      const last = new Map<string, number>();
      const signed: string[] = [];
      for (const [index, content] of whole.split('\n').slice(0, -1).entries()) {
        const line = parseLine(content);
        if (typeof line === 'string' || line.type !== 'checkpoint') {
          throw unusable(path, `line ${index + 1} is not a checkpoint`);
        }
        const { claims } = await readCheckpoint(verifier, line.signed).catch((error: unknown) => {
          if (!(error instanceof UnauthenticatedError) || isClockError(error)) throw error;
          throw unusable(path, `the signature of line ${index + 1} is invalid`, error);
        });
        last.set(claims.tenant, Number(claims.count));
        signed.push(line.signed);
      }
      return new CheckpointFile(file, last, signed);
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
    // What a failed append has left of its lines must not stay before others.
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

function unusable(path: string, why: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The checkpoint file ${path} cannot be used: ${why}; correct WRIT_AUDIT_CHECKPOINT_FILE, or move the file away.`,
    { file: path },
    { cause },
  );
}
