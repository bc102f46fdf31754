import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyPending,
  applyReceipt,
  applyVoid,
  type FactReceipt,
  type Facts,
  factValues,
  initialFacts,
  loadPolicy,
  resultFieldsFor,
} from '../index.ts';

const policy = loadPolicy(
  `policy: support
limits: { fee: { usd: 1 } }
facts:
  paid:
    kind: cap
    type: cents
    initial: 0
    updates:
      - tool: pay
        count: cents(args.amount) + limits.fee
        when: result.status == "ok"
        add: cents(result.sum.usd) + limits.fee
  calls:
    kind: cap
    initial: 2
    updates:
      - { tool: pay, count: 1, if_failed: ignored }
      - { tool: "*", count: 100 }
  tier:
    kind: gate
    initial: unknown
    updates:
      - { tool: look_up, when: has(result.vip) && result.vip, set: '"vip"' }
      - { tool: look_up, set: result.tier }
rules: []
`,
  { file: 'support.yaml' },
);

const pay = (amount: unknown) => ({
  kind: 'tool',
  name: 'pay',
  args: { amount: amount as number },
});
const receipt = (callId: string, status: FactReceipt['status'], usd?: number): FactReceipt => ({
  callId,
  tool: 'pay',
  status,
  fields: usd === undefined ? { status: 'no' } : { status: 'ok', 'sum.usd': usd },
});
const values = (facts: Facts) => factValues(policy, facts);
const pending = (facts: Facts, callId: string, amount: number) =>
  applyPending(policy, facts, callId, pay(amount));

describe('facts', () => {
  const start = initialFacts(policy);

  it('start with their initial values and are plain JSON (SV-3)', () => {
    expect(values(start)).toEqual({ paid: 0, calls: 2, tier: 'unknown' });
    const facts = pending(start, 'c1', 10);
    expect(JSON.parse(JSON.stringify(facts))).toEqual(facts);
  });

  it('count an approved action immediately, rounded up, and only once (SV-3)', () => {
    const once = pending(start, 'c1', 10.001);
    expect(values(once)).toMatchObject({ paid: 1101, calls: 3 });
    expect(pending(once, 'c1', 10.001)).toEqual(once);
    expect(values(pending(once, 'c1', 5)).paid).toBe(1101);
    expect(values(pending(once, 'c1', 20)).paid).toBe(2100);
    expect(values(start).paid).toBe(0);
  });

  it('replace the count with the values of the receipt (SV-3)', () => {
    const facts = applyReceipt(policy, pending(start, 'c1', 10), receipt('c1', 'succeeded', 4.5));
    expect(values(facts)).toMatchObject({ paid: 550, calls: 3 });
    const nothing = applyReceipt(policy, pending(start, 'c1', 10), receipt('c1', 'succeeded'));
    expect(values(nothing).paid).toBe(0);
  });

  it('ignore a repeated receipt (SV-3)', () => {
    const first = applyReceipt(policy, pending(start, 'c1', 10), receipt('c1', 'succeeded', 4));
    expect(applyReceipt(policy, first, receipt('c1', 'succeeded', 4))).toBe(first);
    expect(applyReceipt(policy, first, receipt('c1', 'succeeded', 0))).toBe(first);
    expect(applyVoid(first, 'c1')).toBe(first);
    expect(pending(first, 'c1', 900)).toBe(first);
  });

  it('remove the count of a refused or voided call (SV-3, TG-8)', () => {
    const before = pending(start, 'c1', 10);
    expect(values(applyReceipt(policy, before, receipt('c1', 'refused')))).toEqual(values(start));
    expect(values(applyVoid(before, 'c1'))).toEqual(values(start));
    expect(applyVoid(before, 'c2')).toBe(before);
  });

  it('keep the count of a call with an unknown outcome until a human resolves it (TG-5)', () => {
    const unknown = applyReceipt(policy, pending(start, 'c1', 10), receipt('c1', 'unknown'));
    expect(values(unknown).paid).toBe(1100);
    expect(applyVoid(unknown, 'c1')).toBe(unknown);
    expect(values(applyReceipt(policy, unknown, receipt('c1', 'refused'))).paid).toBe(0);
    expect(values(applyReceipt(policy, unknown, receipt('c1', 'succeeded', 3))).paid).toBe(400);
  });

  it('keep the count of a call that failed inside the tool, unless the policy ignores it (SV-3)', () => {
    const failed = applyReceipt(policy, pending(start, 'c1', 10), receipt('c1', 'failed'));
    expect(values(failed)).toMatchObject({ paid: 1100, calls: 2 });
  });

  it('give a receipt precedence over an earlier void (TG-8)', () => {
    const voided = applyVoid(pending(start, 'c1', 10), 'c1');
    expect(values(applyReceipt(policy, voided, receipt('c1', 'unknown'))).paid).toBe(1100);
    expect(values(applyReceipt(policy, voided, receipt('c1', 'succeeded', 4))).paid).toBe(500);
  });

  it.each([
    ['lacks the field', { status: 'ok' }],
    ['has text for the sum', { status: 'ok', 'sum.usd': '4' }],
    ['has a negative sum, which would widen the cap', { status: 'ok', 'sum.usd': -50 }],
    ['has no fields', undefined],
  ])('keep the count and report the problem when the receipt %s (SYS-4)', (_, fields) => {
    const before = pending(start, 'c1', 10);
    const facts = applyReceipt(policy, before, { ...receipt('c1', 'succeeded'), fields });
    expect(values(facts).paid).toBe(1100);
    expect(facts.calls[0]?.problems).toEqual(['paid']);
  });

  it('reject an action whose count cannot be computed (SYS-4)', () => {
    for (const amount of ['10', null, undefined, -500]) {
      expect(() => applyPending(policy, start, 'c1', pay(amount))).toThrow(
        'The count of the action for fact paid cannot be computed.',
      );
    }
  });

  it('apply the receipt of a call without a recorded approval (SYS-4)', () => {
    const facts = applyReceipt(policy, start, receipt('c9', 'succeeded', 4));
    expect(values(facts)).toMatchObject({ paid: 500, calls: 2 });
    expect(pending(facts, 'c9', 10)).toBe(facts);
  });

  it('update a gate only on a succeeded receipt, by the first update whose condition holds (SV-3)', () => {
    const look = (status: FactReceipt['status'], fields: FactReceipt['fields']) =>
      values(applyReceipt(policy, start, { callId: 'c1', tool: 'look_up', status, fields })).tier;
    expect(look('succeeded', { tier: 'gold', vip: true })).toBe('vip');
    expect(look('succeeded', { tier: 'gold', vip: false })).toBe('gold');
    expect(look('succeeded', { tier: 'gold' })).toBe('gold');
    expect(look('succeeded', { tier: 7 })).toBe('unknown');
    expect(look('failed', { tier: 'gold' })).toBe('unknown');
    expect(look('unknown', { tier: 'gold' })).toBe('unknown');
    const approved = applyPending(policy, start, 'c1', { kind: 'tool', name: 'look_up', args: {} });
    expect(values(approved)).toMatchObject({ tier: 'unknown', calls: 102 });
  });

  it('keep the value of a gate when an earlier update cannot be evaluated, even if a later one applies (SYS-4, SV-4)', () => {
    const text = `policy: p
facts:
  account:
    kind: gate
    initial: unknown
    updates:
      - { tool: look_up, when: result.blocked == true, set: '"blocked"' }
      - { tool: look_up, set: '"clear"' }
rules: []
`;
    const gated = loadPolicy(text, { file: 'p.yaml' });
    const look = (fields: FactReceipt['fields']) => {
      const looked = { callId: 'c1', tool: 'look_up', status: 'succeeded', fields } as const;
      const facts = applyReceipt(gated, initialFacts(gated), looked);
      return [factValues(gated, facts).account, facts.calls[0]?.problems];
    };
    expect(look({ blocked: true })).toEqual(['blocked', []]);
    expect(look({ blocked: false })).toEqual(['clear', []]);
    expect(look({ status: 'ok' })).toEqual(['unknown', ['account']]);
    expect(look({ blocked: 'yes' })).toEqual(['clear', []]);
  });

  it('set a gate from the call approved last, in any order of receipts (SV-3)', () => {
    const look = { kind: 'tool', name: 'look_up', args: {} };
    const both = ['c1', 'c2'].reduce((facts, id) => applyPending(policy, facts, id, look), start);
    const done = (facts: Facts, callId: string, tier: string) =>
      applyReceipt(policy, facts, {
        callId,
        tool: 'look_up',
        status: 'succeeded',
        fields: { tier },
      });
    expect(values(done(done(both, 'c1', 'old'), 'c2', 'new')).tier).toBe('new');
    expect(values(done(done(both, 'c2', 'new'), 'c1', 'old')).tier).toBe('new');
  });

  it('ignore final answers and tools without a fact (SV-3)', () => {
    const narrow = { ...policy, facts: policy.facts.filter(({ name }) => name === 'paid') };
    const mail = { kind: 'tool', name: 'mail', args: {} };
    expect(applyPending(narrow, start, 'c1', mail)).toBe(start);
    expect(applyPending(policy, start, 'c1', { kind: 'final', answer: 'x' })).toBe(start);
    const sent = { callId: 'c1', tool: 'mail', status: 'succeeded' } as const;
    expect(applyReceipt(narrow, start, sent)).toBe(start);
  });

  it('are clamped to the largest exact JSON number (SV-3)', () => {
    const facts = ['c1', 'c2'].reduce((all, id) => pending(all, id, 1e300), start);
    expect(values(facts).paid).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('are kept across a policy change: existing facts keep their values, new facts start at their initial value (SV-3)', () => {
    const facts = pending(start, 'c1', 10);
    const [paid] = policy.facts;
    const fresh = { name: 'fresh', kind: 'gate', type: 'int', initial: 7, updates: [] } as const;
    const next = { ...policy, facts: paid === undefined ? [fresh] : [paid, fresh] };
    expect(factValues(next, facts)).toEqual({ paid: 1100, fresh: 7 });
  });

  it('list the result fields they read, without paths that another path covers (SV-3)', () => {
    expect(resultFieldsFor(policy, 'pay')).toEqual(['error', 'status', 'sum.usd']);
    expect(resultFieldsFor(policy, 'look_up')).toEqual(['error', 'status', 'tier', 'vip']);
    expect(resultFieldsFor(policy, 'mail')).toEqual(['error', 'status']);
  });
});

type Event = readonly ['void'] | readonly [FactReceipt['status'], number | undefined];
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.constant<Event>(['void']),
  fc.constantFrom<Event>(['unknown', undefined], ['refused', undefined], ['failed', undefined]),
);
const RANK = ['void', 'unknown', 'refused', 'failed', 'succeeded'];

describe('facts under any order of events', () => {
  const call = fc.record({
    amount: fc.integer({ min: 1, max: 10_000 }),
    events: fc.array(event, { maxLength: 3 }),
    paid: fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
    times: fc.integer({ min: 1, max: 2 }),
  });
  const runs = fc.array(call, { minLength: 1, maxLength: 5 }).chain((calls) => {
    const all = calls.flatMap(({ events, paid, times }, index) => {
      const receipts: Event[] = paid === undefined ? [] : [['succeeded', paid]];
      return Array.from({ length: times }, () => [...events, ...receipts])
        .flat()
        .map((what) => ({ index, what }));
    });
    return fc.record({
      calls: fc.constant(calls),
      order: fc.shuffledSubarray(all, { minLength: all.length }),
    });
  });

  it('match a simple model when each event is delivered once or twice (SV-3)', () => {
    const property = fc.property(runs, ({ calls, order }) => {
      let facts = calls.reduce(
        (all, { amount }, index) => pending(all, `c${index}`, amount / 100),
        initialFacts(policy),
      );
      for (const { index, what } of order) {
        const [kind, cents] = what;
        const id = `c${index}`;
        facts =
          kind === 'void'
            ? applyVoid(facts, id)
            : applyReceipt(policy, facts, receipt(id, kind, cents && cents / 100));
      }
      let expected = 0;
      for (const { amount, events, paid } of calls) {
        const kinds = [
          ...events.map(([kind]) => kind),
          ...(paid === undefined ? [] : ['succeeded']),
        ];
        const top = RANK[Math.max(...kinds.map((kind) => RANK.indexOf(kind)))] ?? 'pending';
        if (top === 'succeeded') expected += (paid ?? 0) + 100;
        else if (top !== 'void' && top !== 'refused') expected += amount + 100;
      }
      expect(values(facts).paid).toBe(expected);
    });
    fc.assert(property, { numRuns: 500 });
  });
});
