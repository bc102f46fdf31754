import { canonicalJson, UnauthenticatedError } from '@writ/kernel';
import { CHAIN_START, linkHash } from './chain.ts';
import { parseLine, type RecordLine, type SignedLine } from './export-line.ts';
import type { Expected, ReadHead, SignedHead, SoundExport } from './verdict.ts';

/** An export as far as it was read (SV-8). */
export class ChainWalk {
  readonly #readHead: ReadHead;
  readonly #after: number;
  readonly #earlier: SignedHead | undefined;
  #tenant: string | undefined;
  #sequence: number;
  /** Unknown before the first record of an export that begins in the middle: the head proves it. */
  #hash: string | undefined;
  #records = 0;
  #checkpoints = 0;
  /** What the last checkpoint covers; unknown before the first one of such an export. */
  #signedCount: number | undefined;
  #head: SignedHead | undefined;

  /** @param readHead reads the signatures on the way */
  constructor(readHead: ReadHead, { tenant, after = 0, earlier }: Expected) {
    this.#readHead = readHead;
    this.#earlier = earlier;
    this.#tenant = tenant ?? earlier?.tenant;
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

  /** What only the end can show. */
  problemAtEnd(): string | undefined {
    const { count = 0 } = this.#earlier ?? {};
    if (this.#head === undefined || count <= this.#head.count) return undefined;
    return `The chain ends with record ${this.#head.count}, and the earlier export had ${count}.`;
  }

  /** What there is to say when no head has come. */
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
    const rewritten =
      this.#rewritten(sequence, hash) ?? this.#rewritten(sequence - 1, previousHash);
    if (rewritten !== undefined) return rewritten;
    this.#sequence = sequence;
    this.#hash = hash;
    this.#records += 1;
    return undefined;
  }

  /** The chain had another hash at this place before. */
  #rewritten(sequence: number, hash: string): string | undefined {
    const { count, headHash } = this.#earlier ?? {};
    if (sequence !== count || hash === headHash) return undefined;
    return `something up to record ${count} is not what it was when the earlier export was made.`;
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
    if (headHash === (this.#hash ?? headHash)) return this.#rewritten(count, headHash);
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
