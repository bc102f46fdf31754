import { canonicalJson, type JsonObject, UnauthenticatedError } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linkHash } from './chain.ts';
import { CHAIN_START } from './chain-link.ts';
import { formatLine, parseLine, type RecordLine } from './export-line.ts';
import type { SignedHead } from './verification.ts';
import { verifyExport } from './verify-export.ts';

const RECORDS = 60;
const CHECKPOINT_EVERY = 16;

/** All signed heads; a signature is valid when it is among these. */
const signatures = new Map<string, SignedHead>();

async function readHead(signed: string): Promise<SignedHead> {
  const head = signatures.get(signed);
  if (head !== undefined) return head;
  throw new UnauthenticatedError('TOKEN_INVALID', 'its signature does not match.');
}

function sign(head: Omit<SignedHead, 'signedAt'>): string {
  const { tenant, count, headHash, closesExport } = head;
  const signed = `sig-${tenant}-${count}-${closesExport}-${headHash.slice(0, 8)}`;
  signatures.set(signed, { ...head, signedAt: new Date(0) });
  return signed;
}

/** Returns the export of the records after record `after` of a tenant's chain, as a supervisor writes it. */
function exported(tenant: string, records = RECORDS, after = 0): string[] {
  const lines: string[] = [];
  let [hash, previousCount, checkpointNumber] = [CHAIN_START, 0, 0];
  for (let sequence = 1; sequence <= records; sequence += 1) {
    const record = { tenant, kind: 'decision', call_id: `op-${sequence}`, verdict: 'approve' };
    const previousHash = hash;
    hash = linkHash(previousHash, canonicalJson(record));
    if (sequence > after) {
      lines.push(formatLine({ type: 'record', sequence, previousHash, hash, record }));
    }
    if (sequence % CHECKPOINT_EVERY !== 0) continue;
    checkpointNumber += 1;
    const at = { count: sequence, previousCount, checkpointNumber };
    const head = { tenant, headHash: hash, closesExport: false, ...at };
    if (sequence > after) lines.push(formatLine({ type: 'checkpoint', signed: sign(head) }));
    previousCount = sequence;
  }
  previousCount = records - (records % CHECKPOINT_EVERY);
  const at = { count: records, previousCount, checkpointNumber };
  const head = { tenant, headHash: hash, closesExport: true, ...at };
  lines.push(formatLine({ type: 'head', signed: sign(head) }));
  return lines;
}

/** The signature that ends an export. */
function headOf(lines: readonly string[]): string {
  const head = parseLine(lines.at(-1) ?? '');
  return typeof head === 'string' || head.type === 'record' ? '' : head.signed;
}

const ACME = exported('acme');
const RIVALS = exported('rivals');

function recordOf(text: string | undefined): RecordLine | undefined {
  const line = parseLine(text ?? '');
  return typeof line !== 'string' && line.type === 'record' ? line : undefined;
}

/** Renumbers and rehashes the records, like an attacker who can write the file but not sign. */
function rehashed(lines: readonly string[]): string[] {
  let [sequence, hash] = [0, CHAIN_START];
  return lines.map((text) => {
    const line = recordOf(text);
    if (line === undefined) return text;
    const previousHash = hash;
    sequence += 1;
    hash = linkHash(previousHash, canonicalJson(line.record));
    return formatLine({ ...line, sequence, previousHash, hash });
  });
}

function edited(text: string, at: number, to: number): string {
  const index = at % text.length;
  return `${text.slice(0, index)}${String.fromCharCode(to)}${text.slice(index + 1)}`;
}

function withRecord(text: string, change: JsonObject): string {
  const line = recordOf(text);
  if (line === undefined) return text;
  return formatLine({ ...line, record: { ...line.record, ...change } });
}

const spot = fc.nat({ max: ACME.length - 1 });
const mutation = fc.oneof(
  fc.record({ kind: fc.constant('edit'), at: spot, index: fc.nat(), to: fc.nat({ max: 126 }) }),
  fc.record({ kind: fc.constant('change'), at: spot, verdict: fc.constantFrom('block', '', 'a') }),
  fc.record({ kind: fc.constant('delete'), at: spot, length: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ kind: fc.constant('reorder'), at: spot, with: spot }),
  fc.record({ kind: fc.constant('repeat'), at: spot, from: spot }),
  fc.record({ kind: fc.constant('truncate'), at: spot, posesAsWhole: fc.boolean() }),
  fc.record({ kind: fc.constant('splice'), at: spot, length: fc.integer({ min: 1, max: 70 }) }),
  fc.record({ kind: fc.constant('insert'), at: spot, from: spot }),
);
type Mutation = typeof mutation extends fc.Arbitrary<infer M> ? M : never;

function mutated(lines: readonly string[], change: Mutation): string[] {
  const copy = [...lines];
  const { at } = change;
  const here = copy[at] ?? '';
  if ('to' in change) copy[at] = edited(here, change.index, change.to);
  else if ('verdict' in change) copy[at] = withRecord(here, { verdict: change.verdict });
  else if ('with' in change) [copy[at], copy[change.with]] = [copy[change.with] ?? '', here];
  else if ('posesAsWhole' in change) {
    copy.length = at;
    const last = copy.at(-1);
    if (change.posesAsWhole && last !== undefined)
      copy[at - 1] = last.replace('"checkpoint"', '"head"');
  } else if (change.kind === 'splice' && 'length' in change)
    copy.splice(at, change.length, ...RIVALS.slice(at, at + change.length));
  else if ('length' in change) copy.splice(at, change.length);
  else if (change.kind === 'insert') copy.splice(at, 0, RIVALS[change.from] ?? '');
  else copy.splice(at, 0, copy[change.from] ?? '');
  return copy;
}

describe('verifyExport', () => {
  it('detects each of 1,000 edits, deletions, reorders, truncations and splices (SV-8)', async () => {
    const kinds = new Map<string, number>();
    let found = 0;
    await fc.assert(
      fc.asyncProperty(mutation, fc.boolean(), async (change, rehash) => {
        const changed = mutated(ACME, change);
        const lines = rehash ? rehashed(changed) : changed;
        fc.pre(lines.join('\n') !== ACME.join('\n'));
        const verdict = await verifyExport(lines, readHead, { tenant: 'acme' });
        expect(verdict).toMatchObject({ holds: false, sentence: expect.stringMatching(/\.$/) });
        kinds.set(change.kind, (kinds.get(change.kind) ?? 0) + 1);
        found += 1;
      }),
      { seed: 8, numRuns: 1_000 },
    );
    expect(found).toBe(1_000);
    expect(kinds.size).toBe(8);
  });

  it('accepts complete exports, partial exports and the export of an empty chain (SV-8)', async () => {
    expect(await verifyExport(ACME, readHead)).toMatchObject({
      holds: true,
      tenant: 'acme',
      records: 60,
      checkpoints: 3,
      head: { count: 60 },
    });
    for (const after of [1, 15, 16, 17, 48, 59, 60]) {
      const part = exported('acme', RECORDS, after);
      expect(await verifyExport(part, readHead, { after })).toMatchObject({
        holds: true,
        records: 60 - after,
      });
    }
    expect(await verifyExport(exported('acme', 0), readHead)).toMatchObject({
      holds: true,
      records: 0,
    });
  });

  const at = (index: number, ...put: string[]): string[] => ACME.with(index, put[0] ?? '');
  it.each<readonly [string, readonly string[], RegExp]>([
    ['an edit', at(4, ACME[4]?.replace('op-5', 'op-6') ?? ''), /^Line 5: record 5 was changed/],
    ['a space', at(4, `${ACME[4]} `), /^Line 5: the line is not canonical JSON/],
    ['a deletion', ACME.toSpliced(4, 1), /^Line 5: record 5 is missing before record 6/],
    ['a gap', ACME.toSpliced(4, 3), /^Line 5: records 5 to 7 are missing before record 8/],
    ['a repeat', ACME.toSpliced(4, 0, ACME[2] ?? ''), /^Line 5: record 3 is out of order/],
    ['a splice', rehashed(at(4, RIVALS[4] ?? '')), /^Line 5: record 5 belongs to tenant rivals/],
    [
      'a forgery',
      rehashed(at(4, withRecord(ACME[4] ?? '', { verdict: 'block' }))),
      /^Line 17: the checkpoint over 16 records was signed for another hash: .* in the range 1 to 16/,
    ],
    [
      'a head for another hash than the checkpoint before it',
      [
        ...exported('acme', CHECKPOINT_EVERY).slice(0, -1),
        formatLine({
          type: 'head',
          signed: sign({
            tenant: 'acme',
            count: CHECKPOINT_EVERY,
            previousCount: CHECKPOINT_EVERY,
            checkpointNumber: 1,
            headHash: linkHash(CHAIN_START, '{}'),
            closesExport: true,
          }),
        }),
      ],
      /^Line 18: the head over 16 records was signed for another hash than the checkpoint/,
    ],
    [
      'a lost checkpoint',
      ACME.toSpliced(16, 1),
      /^Line 33: the checkpoint over 32 records must follow a checkpoint over 16 records/,
    ],
    ['a lost end', ACME.slice(0, -1), /^The export ends after record 60 without a signed head/],
    [
      'a false end',
      [...ACME.slice(0, 16), ACME[16]?.replace('checkpoint', 'head') ?? ''],
      /^Line 17: the head over 16 records is a checkpoint from the middle/,
    ],
    ['an addition', [...ACME, ACME[0] ?? ''], /^Line 65: a line follows the head/],
    ['an empty file', [], /^The export ends after record 0 without/],
  ])('reports the first problem of %s in one sentence (SV-8)', async (_what, lines, sentence) => {
    const verdict = await verifyExport(lines, readHead);
    expect(verdict).toMatchObject({ holds: false, sentence: expect.stringMatching(sentence) });
  });

  it('rejects an export of another tenant or of another range (SV-8)', async () => {
    expect(await verifyExport(RIVALS, readHead, { tenant: 'acme' })).toMatchObject({
      holds: false,
      line: 1,
    });
    expect(await verifyExport(exported('acme', RECORDS, 20), readHead)).toMatchObject({
      holds: false,
      sentence: 'Line 1: records 1 to 20 are missing before record 21.',
    });
  });

  it('detects a chain that was rewritten or truncated since an earlier export (SV-8)', async () => {
    const earlier = signatures.get(headOf(exported('acme', 40)));
    if (earlier === undefined) throw new Error('The head was never signed.');
    const compare = (lines: readonly string[], more = {}) =>
      verifyExport(lines, readHead, { earlier, ...more });
    expect(await compare(ACME)).toMatchObject({ holds: true });
    for (const after of [20, 39, 40]) {
      const part = exported('acme', RECORDS, after);
      expect(await compare(part, { after })).toMatchObject({ holds: true });
    }
    const other = { ...earlier, headHash: 'f'.repeat(64) };
    for (const after of [0, 39, 40]) {
      const part = exported('acme', RECORDS, after);
      expect(await verifyExport(part, readHead, { earlier: other, after })).toMatchObject({
        holds: false,
        sentence: expect.stringMatching(/record 40 or an earlier record was changed/),
      });
    }
    const nothing = exported('acme', 40, 40);
    expect(await verifyExport(nothing, readHead, { earlier: other, after: 40 })).toMatchObject({
      holds: false,
    });
    await expect(compare(exported('acme', RECORDS, 50), { after: 50 })).rejects.toMatchObject({
      reason: 'EXPORTS_NOT_COMPARABLE',
    });
    expect(await compare(exported('acme', 30))).toMatchObject({
      holds: false,
      sentence: 'The chain ends with record 30, but the earlier export ended with record 40.',
    });
    expect(await compare(RIVALS)).toMatchObject({ holds: false, line: 1 });
  });

  it('detects a chain that was rolled back since its last published checkpoint (SV-8)', async () => {
    const checkpoints = ACME.flatMap((text) => {
      const line = parseLine(text);
      return typeof line !== 'string' && line.type === 'checkpoint' ? [line.signed] : [];
    });
    const published = async (at: number, change: Partial<SignedHead> = {}) => {
      const head = { ...(await readHead(checkpoints.at(at) ?? '')), ...change };
      return { published: new Map([['acme', head]]) };
    };
    const last = await published(-1);
    expect(await verifyExport(ACME, readHead, last)).toMatchObject({ holds: true });
    // An export without the later records, with a new signature over the remaining ones.
    expect(await verifyExport(exported('acme', 40), readHead, last)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(
        /ends with record 40, but published checkpoint 3 \(.*\) covers 48 records/,
      ),
    });
    const rewritten = await published(1, { headHash: 'f'.repeat(64) });
    expect(await verifyExport(ACME, readHead, rewritten)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(/^Line 33: record 32 or an earlier record was changed after/),
    });
    const numbered = await published(-1, { checkpointNumber: 4 });
    expect(await verifyExport(ACME, readHead, numbered)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(
        /it has 3 checkpoints, but published checkpoint 4 \(.*\) exists/,
      ),
    });
    const misnumbered = sign({
      ...(await readHead(checkpoints[2] ?? '')),
      checkpointNumber: 2,
      tenant: 'acme',
    });
    expect(signatures.get(misnumbered)).toMatchObject({ checkpointNumber: 2 });
    expect(await verifyExport(ACME, readHead)).toMatchObject({
      holds: false,
      sentence: expect.stringMatching(/has the number 2 instead of 3: the chain was rolled back/),
    });
    sign({ ...(await readHead(checkpoints[2] ?? '')), checkpointNumber: 3 });
  });

  it('throws when a signature cannot be verified (SYS-4)', async () => {
    const fails = async (): Promise<SignedHead> => {
      throw new Error('The keys cannot be read.');
    };
    await expect(verifyExport(ACME, fails)).rejects.toThrow('The keys cannot be read.');
  });
});
