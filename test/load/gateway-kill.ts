import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { GatewayStage, type StagedCall } from './gateway-kill-stage.ts';
import { seeded } from './random.ts';

/** Where a kill falls: between sending a call and its answer, as the tool and its caller see it. */
const POINTS = ['sent', 'begun', 'worked', 'answered'] as const;

/** What is in flight at each kill. */
const TOOLS = ['pay', 'pay', 'pay', 'charge', 'look'] as const;

/** How each kind of tool may end; a call that a kill kept from its intent is made when it is repeated. */
const ENDINGS: Readonly<Record<string, readonly CallStatus[]>> = {
  pay: [CallStatus.OK, CallStatus.REFUSED, CallStatus.UNKNOWN],
  charge: [CallStatus.OK],
  look: [CallStatus.OK],
};

/**
 * Kills the gateway again and again at seeded points between intent and outcome of calls, and repeats
 * on the next one what has no answer (TG-5). The tools run elsewhere and append what they do to a file
 * before they answer: that ledger shows no destructive tool executed twice, and every call ends as
 * done, refused or outcome_unknown.
 * @param kills how many are to fall while a destructive call has intent and no outcome
 */
export async function gatewayKill({
  kills,
  seed,
}: {
  readonly kills: number;
  readonly seed: number;
}) {
  const random = seeded(seed);
  let due: { readonly point: (typeof POINTS)[number]; readonly callId: string } | undefined;
  let ledger = '';
  let strike: () => void = () => undefined;
  const reach = (point: (typeof POINTS)[number], callId: string): void => {
    if (due?.point === point && due.callId === callId) strike();
  };
  const run = async ({ tool, callId, idempotencyKey }: Record<string, unknown>): Promise<void> => {
    reach('begun', String(callId));
    await after(random() * 4);
    appendFileSync(ledger, `${tool} ${callId} ${idempotencyKey}\n`);
    reach('worked', String(callId));
    await after(random() * 4);
    // The answer is on its way when this is over.
    setTimeout(() => reach('answered', String(callId)), random() * 6);
  };
  const source = 'desk';
  const stage = await GatewayStage.start({
    tools: {
      pay: { entry: { side_effect: 'destructive', source }, run: (call) => run({ ...call }) },
      charge: { entry: { side_effect: 'idempotent', source }, run: (call) => run({ ...call }) },
      look: { entry: { side_effect: 'read_only', source }, run: (call) => run({ ...call }) },
    },
    sources: { [source]: {} },
  });
  try {
    ledger = join(stage.dir, 'ledger.txt');
    writeFileSync(ledger, '');
    const open = new Map<string, StagedCall>();
    const ended = new Map<string, { readonly tool: string; readonly status: CallStatus }>();
    const ask = async (call: StagedCall): Promise<void> => {
      const answer = await stage.call(await stage.order(call)).catch(() => undefined);
      if (answer === undefined) return;
      const { status, stopReason } = answer;
      const { tool, callId } = call;
      assert.ok(ENDINGS[tool]?.includes(status), `${tool} ended as ${status} (${stopReason}).`);
      if (status === CallStatus.UNKNOWN) assert.equal(stopReason, `outcome_unknown:${tool}`);
      const before = ended.get(callId)?.status;
      assert.ok(before === undefined || before === status, `${callId} ended in two ways.`);
      ended.set(callId, { tool, status });
      open.delete(callId);
    };
    let counted = 0;
    let rounds = 0;
    let between = 0;
    for (; counted < kills && rounds < 3 * kills + 10; rounds += 1) {
      for (const [index, tool] of TOOLS.entries()) {
        const callId = `op-${rounds}-${index}`;
        open.set(callId, { tool, callId });
      }
      const point = POINTS[Math.floor(random() * POINTS.length)] ?? 'sent';
      due = { point, callId: `op-${rounds}-${Math.floor(random() * 3)}` };
      const struck = Promise.withResolvers<void>();
      strike = () => {
        due = undefined;
        void stage.kill().then(struck.resolve);
      };
      // Whatever became of the call that was to be hit, nobody waits for ever.
      const latest = setTimeout(strike, 2_000);
      const waits = Array.from(open.values(), () => random() * 8);
      const asked = Array.from(open.values(), async (call, index) => {
        await after(waits[index] ?? 0);
        await ask(call);
      });
      if (point === 'sent') setTimeout(() => strike(), random() * 25);
      await struck.promise;
      clearTimeout(latest);
      await Promise.all(asked);
      const underWay = stage.underWay();
      between += underWay;
      if (underWay > 0) counted += 1;
      await stage.boot();
    }
    assert.equal(counted, kills, 'Too few kills fell between intent and outcome.');
    due = undefined;
    await Promise.all(Array.from(open.values(), ask));
    assert.equal(open.size, 0, 'A call has no ending.');
    return {
      ...check(ledger, ended),
      kills: rounds,
      'of them between intent and outcome': counted,
      'destructive calls hit there': between,
    };
  } finally {
    await stage.close();
  }
}

/** Holds what the callers were told against what the tools did. */
function check(
  ledger: string,
  ended: ReadonlyMap<string, { readonly tool: string; readonly status: CallStatus }>,
) {
  const work = new Map<string, number>();
  const keys = new Map<string, string>();
  for (const line of readFileSync(ledger, 'utf8').trimEnd().split('\n')) {
    const [, callId = '', key = ''] = line.split(' ');
    work.set(callId, (work.get(callId) ?? 0) + 1);
    assert.ok((keys.get(callId) ?? key) === key, `${callId} ran under two idempotency keys.`);
    keys.set(callId, key);
  }
  const counts = { done: 0, refused: 0, outcome_unknown: 0 };
  let repeated = 0;
  for (const [callId, { tool, status }] of ended) {
    const times = work.get(callId) ?? 0;
    if (tool !== 'pay') {
      assert.ok(times > 0, `${callId} of ${tool} ended well and did nothing.`);
      if (times > 1) repeated += 1;
      continue;
    }
    assert.ok(times <= 1, `${callId} of a destructive tool ran ${times} times.`);
    if (status === CallStatus.OK) assert.equal(times, 1, `${callId} is done and did nothing.`);
    if (status === CallStatus.REFUSED) assert.equal(times, 0, `${callId} was refused and ran.`);
    if (status === CallStatus.OK) counts.done += 1;
    else if (status === CallStatus.REFUSED) counts.refused += 1;
    else counts.outcome_unknown += 1;
  }
  return {
    'destructive calls': counts.done + counts.refused + counts.outcome_unknown,
    ...counts,
    'destructive calls executed twice': 0,
    'other calls run again under the same key': repeated,
  };
}
