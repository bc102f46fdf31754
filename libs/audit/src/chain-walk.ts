import { canonicalJson, UnauthenticatedError } from '@writ/kernel/portable';
import { CHAIN_START, linkText } from './chain-link.ts';
import { parseLine, type RecordLine, type SignedLine } from './export-line.ts';
import type { Expected, ExportCrypto, SignedHead, ValidExport } from './verification.ts';

/** Verifies the lines of an export one by one (SV-8). */
export class ChainWalk {
  readonly #crypto: ExportCrypto;
  readonly #after: number;
  readonly #earlier: SignedHead | undefined;
  readonly #published: ReadonlyMap<string, SignedHead>;
  #tenant: string | undefined;
  #sequence: number;
  /** The hash of the last record; undefined before the first record of a partial export. */
  #hash: string | undefined;
  #records = 0;
  #checkpoints = 0;
  /** The record count of the last checkpoint; undefined before the first one of a partial export. */
  #signedCount: number | undefined;
  /** The number of the last checkpoint; undefined before the first one of a partial export. */
  #checkpointNumber: number | undefined;
  #head: SignedHead | undefined;

  constructor(
    crypto: ExportCrypto,
    { tenant, after = 0, earlier, published = new Map() }: Expected,
  ) {
    this.#crypto = crypto;
    this.#earlier = earlier;
    this.#published = published;
    this.#tenant = tenant ?? earlier?.tenant;
    this.#after = after;
    this.#sequence = after;
    this.#hash = after === 0 ? CHAIN_START : undefined;
    this.#signedCount = after === 0 ? 0 : undefined;
    this.#checkpointNumber = after === 0 ? 0 : undefined;
  }

  /** Verifies the next line; returns its problem, if any. */
  async next(text: string): Promise<string | undefined> {
    if (this.#head !== undefined) return 'a line follows the head that ends the export.';
    const line = parseLine(text);
    if (typeof line === 'string') return `the line ${line}.`;
    if (line.type === 'record') return await this.#nextRecord(line);
    return await this.#nextSigned(line);
  }

  /** The result after the head was read; undefined before. */
  end(): ValidExport | undefined {
    if (this.#head === undefined) return undefined;
    const { tenant } = this.#head;
    const [records, checkpoints] = [this.#records, this.#checkpoints];
    return { holds: true, tenant, records, checkpoints, head: this.#head };
  }

  /** Compares the head with the earlier export and the published checkpoint; returns the first problem, if any. */
  problemAtEnd(): string | undefined {
    if (this.#head === undefined) return undefined;
    const { tenant, count, checkpointNumber } = this.#head;
    const { count: earlier = 0 } = this.#earlier ?? {};
    if (earlier > count) {
      return `The chain ends with record ${count}, but the earlier export ended with record ${earlier}.`;
    }
    const published = this.#published.get(tenant);
    if (published === undefined) return undefined;
    if (published.count > count) {
      return `The chain was rolled back: it ends with record ${count}, but ${nameOf(published)} covers ${published.count} records.`;
    }
    if (published.checkpointNumber > checkpointNumber) {
      return `The chain was rolled back: it has ${checkpointNumber} checkpoints, but ${nameOf(published)} exists.`;
    }
    return undefined;
  }

  /** The problem of an export without a head. */
  missingHead(): string {
    return `The export ends after record ${this.#sequence} without a signed head: it is truncated.`;
  }

  async #nextRecord(line: RecordLine): Promise<string | undefined> {
    const { sequence, previousHash, hash, record } = line;
    const { tenant } = record;
    if (sequence !== this.#sequence + 1) return this.#outOfOrder(sequence);
    if (typeof tenant !== 'string') return `record ${sequence} has no tenant.`;
    const mismatch = this.#tenantMismatch(tenant, `record ${sequence}`);
    if (mismatch !== undefined) return mismatch;
    if (previousHash !== (this.#hash ?? previousHash)) {
      return `record ${sequence} does not follow the previous record: its previous_hash differs.`;
    }
    if ((await this.#crypto.sha256(linkText(previousHash, canonicalJson(record)))) !== hash) {
      return `record ${sequence} was changed: its hash does not match its content.`;
    }
    const rewritten =
      this.#rewritten(sequence, hash) ?? this.#rewritten(sequence - 1, previousHash);
    if (rewritten !== undefined) return rewritten;
    this.#sequence = sequence;
    this.#hash = hash;
    this.#records += 1;
    return undefined;
  }

  /** Compares the hash with those of the earlier export and of the published checkpoint. */
  #rewritten(sequence: number, hash: string): string | undefined {
    const { count, headHash } = this.#earlier ?? {};
    if (sequence === count && hash !== headHash) {
      return `record ${count} or an earlier record was changed after the earlier export.`;
    }
    const published = this.#published.get(this.#tenant ?? '');
    if (sequence !== published?.count || hash === published.headHash) return undefined;
    return `record ${sequence} or an earlier record was changed after ${nameOf(published)}.`;
  }

  #outOfOrder(sequence: number): string {
    if (sequence <= this.#sequence) {
      return `record ${sequence} is out of order: record ${this.#sequence} precedes it.`;
    }
    const from = this.#sequence + 1;
    const missing =
      sequence - 1 === from ? `record ${from} is` : `records ${from} to ${sequence - 1} are`;
    return `${missing} missing before record ${sequence}.`;
  }

  async #nextSigned({ type, signed }: SignedLine): Promise<string | undefined> {
    let head: SignedHead;
    try {
      head = await this.#crypto.readHead(signed);
    } catch (error) {
      if (!(error instanceof UnauthenticatedError)) throw error;
      return `the ${type} after record ${this.#sequence} is invalid: ${error.message}`;
    }
    const problem = this.#check(type, head);
    if (problem !== undefined) return problem;
    this.#signedCount = head.count;
    this.#checkpointNumber = head.checkpointNumber;
    if (type === 'head') this.#head = head;
    else this.#checkpoints += 1;
    return undefined;
  }

  #check(type: SignedLine['type'], head: SignedHead): string | undefined {
    const { count, headHash, previousCount } = head;
    const name = `the ${type} over ${count} records`;
    const mismatch = this.#tenantMismatch(head.tenant, name);
    if (mismatch !== undefined) return mismatch;
    if (head.closesExport !== (type === 'head')) {
      return type === 'head'
        ? `${name} is a checkpoint from the middle of the chain: the export is truncated.`
        : `${name} is the head of another export.`;
    }
    if (count !== this.#sequence) {
      return `${name} follows record ${this.#sequence}: records or checkpoints are missing or reordered.`;
    }
    // A partial export omits only the checkpoints before its start.
    const follows =
      this.#signedCount === undefined
        ? previousCount <= this.#after
        : previousCount === this.#signedCount;
    if (!follows)
      return `${name} must follow a checkpoint over ${previousCount} records, which is missing.`;
    const misnumbered = this.#misnumbered(type, head, name);
    if (misnumbered !== undefined) return misnumbered;
    if (headHash === (this.#hash ?? headHash)) return this.#rewritten(count, headHash);
    const from = (this.#signedCount ?? this.#after) + 1;
    if (from > count) {
      return `${name} was signed for another hash than the checkpoint over the same records.`;
    }
    return `${name} was signed for another hash: at least one record in the range ${from} to ${count} was changed, and the hashes were recomputed.`;
  }

  /** Detects a checkpoint whose number does not follow the previous one's; older releases wrote no numbers. */
  #misnumbered(
    type: SignedLine['type'],
    { checkpointNumber }: SignedHead,
    name: string,
  ): string | undefined {
    const last = this.#checkpointNumber;
    if (last === undefined || (last === 0 && checkpointNumber === 0)) return undefined;
    const expected = type === 'head' ? last : last + 1;
    if (checkpointNumber === expected || (last === 0 && this.#checkpoints > 0)) return undefined;
    return `${name} has the number ${checkpointNumber} instead of ${expected}: the chain was rolled back.`;
  }

  /** Detects records and signatures of another tenant. */
  #tenantMismatch(tenant: string, what: string): string | undefined {
    this.#tenant ??= tenant;
    if (tenant === this.#tenant) return undefined;
    return `${what} belongs to tenant ${tenant}, but the chain belongs to tenant ${this.#tenant}.`;
  }
}

function nameOf({ checkpointNumber, signedAt }: SignedHead): string {
  return `published checkpoint ${checkpointNumber} (signed at ${signedAt.toISOString()})`;
}
