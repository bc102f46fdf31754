import { canonicalJson, UnauthenticatedError } from '@writ/kernel';
import { CHAIN_START, linkHash } from './chain.ts';
import { parseLine, type RecordLine, type SignedLine } from './export-line.ts';

/** What the supervisor signed: that a chain of so many records ends with this hash. */
export interface SignedHead {
  readonly tenant: string;
  /** Number of records, from the first. */
  readonly count: number;
  /** Of the last record; CHAIN_START when there is none. */
  readonly headHash: string;
  /** What the checkpoint before it covers; zero when it is the first. */
  readonly previousCount: number;
  /** Whether it was signed to end an export. */
  readonly closesExport: boolean;
  readonly signedAt: Date;
}

/**
 * Reads a signature with the public keys that the verifier trusts.
 * @throws UnauthenticatedError when it does not count; everything else that it throws means that it
 *   could not be told
 */
export type ReadHead = (signed: string) => Promise<SignedHead>;

/** What the export was asked for. */
export interface Expected {
  /** Whose chain; the one that the export names unless given. */
  readonly tenant?: string;
  /** The last record that the export leaves out on purpose; none unless given. */
  readonly after?: number;
}

/** An export in which everything fits. */
export interface SoundExport {
  readonly holds: true;
  readonly tenant: string;
  readonly records: number;
  readonly checkpoints: number;
  /** The signed head that ends it. */
  readonly head: SignedHead;
}

/** An export that was changed. */
export interface BrokenExport {
  readonly holds: false;
  /** Where the first broken place is, from 1. */
  readonly line: number;
  /** One sentence that says where and what. */
  readonly sentence: string;
}

/**
 * Checks an export line by line, up to the first broken place (SV-8): every record follows the one
 * before and has the hash of its content, every checkpoint is signed, names the checkpoint before it
 * and the hash that the chain has there, and a signed head ends it.
 * @throws what `lines` and `readHead` throw, but for signatures that do not count
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  readHead: ReadHead,
  expected: Expected = {},
): Promise<SoundExport | BrokenExport> {
  const walk = new ChainWalk(readHead, expected);
  let line = 0;
  for await (const text of lines) {
    line += 1;
    const problem = await walk.take(text);
    if (problem !== undefined) return { holds: false, line, sentence: `Line ${line}: ${problem}` };
  }
  return walk.end() ?? { holds: false, line: line + 1, sentence: walk.cutOff() };
}

/** An export as far as it was read. */
class ChainWalk {
  readonly #readHead: ReadHead;
  readonly #after: number;
  #tenant: string | undefined;
  #sequence: number;
  /** Unknown before the first record of an export that begins in the middle: the head proves it. */
  #hash: string | undefined;
  #records = 0;
  #checkpoints = 0;
  /** What the last checkpoint covers; unknown before the first one of such an export. */
  #signedCount: number | undefined;
  #head: SignedHead | undefined;

  constructor(readHead: ReadHead, { tenant, after = 0 }: Expected) {
    this.#readHead = readHead;
    this.#tenant = tenant;
    this.#after = after;
    this.#sequence = after;
    this.#hash = after === 0 ? CHAIN_START : undefined;
    this.#signedCount = after === 0 ? 0 : undefined;
  }

  /** Takes the next line; a text says what is wrong with it. */
  async take(text: string): Promise<string | undefined> {
    if (this.#head !== undefined) return 'something follows the head that ends the export.';
    const line = parseLine(text);
    if (typeof line === 'string') return `it ${line}, so it was not written by a supervisor.`;
    if (line.type === 'record') return this.#takeRecord(line);
    return await this.#takeSigned(line);
  }

  /** What was read, once the head has come. */
  end(): SoundExport | undefined {
    if (this.#head === undefined) return undefined;
    const { tenant } = this.#head;
    const [records, checkpoints] = [this.#records, this.#checkpoints];
    return { holds: true, tenant, records, checkpoints, head: this.#head };
  }

  cutOff(): string {
    return `The export ends after record ${this.#sequence} without a signed head, so it was cut off.`;
  }

  #takeRecord({ sequence, previousHash, hash, record }: RecordLine): string | undefined {
    const { tenant } = record;
    if (sequence !== this.#sequence + 1) return this.#outOfOrder(sequence);
    if (typeof tenant !== 'string') return `record ${sequence} names no tenant.`;
    const foreign = this.#foreign(tenant, `record ${sequence}`);
    if (foreign !== undefined) return foreign;
    if (previousHash !== (this.#hash ?? previousHash)) {
      return `record ${sequence} does not follow the record before it: it names another previous hash.`;
    }
    if (linkHash(previousHash, canonicalJson(record)) !== hash) {
      return `record ${sequence} was changed: its hash is not that of its content.`;
    }
    this.#sequence = sequence;
    this.#hash = hash;
    this.#records += 1;
    return undefined;
  }

  #outOfOrder(sequence: number): string {
    if (sequence <= this.#sequence) {
      return `record ${sequence} is out of its place: record ${this.#sequence} came before it.`;
    }
    const from = this.#sequence + 1;
    const missing =
      sequence - 1 === from ? `record ${from} is` : `records ${from} to ${sequence - 1} are`;
    return `${missing} missing before record ${sequence}.`;
  }

  async #takeSigned({ type, signed }: SignedLine): Promise<string | undefined> {
    let head: SignedHead;
    try {
      head = await this.#readHead(signed);
    } catch (error) {
      if (!(error instanceof UnauthenticatedError)) throw error;
      return `the ${type} after record ${this.#sequence} does not count: ${error.message}`;
    }
    const problem = this.#judge(type, head);
    if (problem !== undefined) return problem;
    this.#signedCount = head.count;
    if (type === 'head') this.#head = head;
    else this.#checkpoints += 1;
    return undefined;
  }

  #judge(type: SignedLine['type'], head: SignedHead): string | undefined {
    const { count, headHash, previousCount } = head;
    const name = `the ${type} over ${count} records`;
    const foreign = this.#foreign(head.tenant, name);
    if (foreign !== undefined) return foreign;
    if (head.closesExport !== (type === 'head')) {
      return type === 'head'
        ? `${name} is a checkpoint from the middle of the chain, so the export was cut off.`
        : `${name} was signed to end another export.`;
    }
    if (count !== this.#sequence) {
      return `${name} comes after record ${this.#sequence}, so records or checkpoints are missing or moved.`;
    }
    // An export that begins in the middle leaves out the checkpoints before that, and no others.
    const follows =
      this.#signedCount === undefined
        ? previousCount <= this.#after
        : previousCount === this.#signedCount;
    if (!follows)
      return `the checkpoint over ${previousCount} records that ${name} follows is missing.`;
    if (headHash === (this.#hash ?? headHash)) return undefined;
    const from = (this.#signedCount ?? this.#after) + 1;
    return `${name} was signed over another hash: something in records ${from} to ${count} was changed and hashed anew.`;
  }

  /** What belongs to another tenant was put in from its chain. */
  #foreign(tenant: string, what: string): string | undefined {
    this.#tenant ??= tenant;
    if (tenant === this.#tenant) return undefined;
    return `${what} belongs to tenant ${tenant}, and the chain to ${this.#tenant}.`;
  }
}
