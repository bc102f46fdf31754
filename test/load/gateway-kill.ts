import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { seeded } from '@writ/testing/random';
import { GatewayHarness, type ToolCall } from './gateway-harness.ts';

/** The points of a call at which the gateway is killed, from request to response. */
const POINTS = ['sent', 'begun', 'worked', 'answered'] as const;

/** The calls that are in flight at each kill. */
const TOOLS = ['pay', 'pay', 'pay', 'charge', 'lookup'] as const;

/** Valid outcomes by tool; if the gateway is killed before it records the intent, the retry executes the call. */
const OUTCOMES: Readonly<Record<string, readonly CallStatus[]>> = {
  pay: [CallStatus.OK, CallStatus.REFUSED, CallStatus.UNKNOWN],
  charge: [CallStatus.OK],
  lookup: [CallStatus.OK],
};

/**
 * Kills the gateway at seeded points of calls, from request to response, and repeats the unanswered calls after each
 * restart (TG-5). The tools run in this process and append each execution to a ledger before they answer. The ledger
 * shows that no destructive tool ran twice; every call ends as done, refused or outcome_unknown.
 * @param kills number of kills that must hit a destructive call between intent and outcome
 */
export async function gatewayKill({
  kills,
  seed,
}: {
  readonly kills: number;
  readonly seed: number;
}) {
  const random = seeded(seed);
  let target: { readonly point: (typeof POINTS)[number]; readonly callId: string } | undefined;
  let ledger = '';
  let kill: () => void = () => undefined;
  const reach = (point: (typeof POINTS)[number], callId: string): void => {
    if (target?.point === point && target.callId === callId) kill();
  };
  const run = async ({ tool, callId, idempotencyKey }: Record<string, unknown>): Promise<void> => {
    reach('begun', String(callId));
    await after(random() * 4);
    appendFileSync(ledger, `${tool} ${callId} ${idempotencyKey}\n`);
    reach('worked', String(callId));
    await after(random() * 4);
    // The response is in flight by then.
    setTimeout(() => reach('answered', String(callId)), random() * 6);
  };
  const source = 'payments';
  const harness = await GatewayHarness.start({
    tools: {
      pay: { entry: { side_effect: 'destructive', source }, run: (call) => run({ ...call }) },
      charge: { entry: { side_effect: 'idempotent', source }, run: (call) => run({ ...call }) },
      lookup: { entry: { side_effect: 'read_only', source }, run: (call) => run({ ...call }) },
    },
    sources: { [source]: {} },
  });
  try {
    ledger = join(harness.dir, 'ledger.txt');
    writeFileSync(ledger, '');
    const open = new Map<string, ToolCall>();
    const ended = new Map<string, { readonly tool: string; readonly status: CallStatus }>();
    const attempt = async (call: ToolCall): Promise<void> => {
      const answer = await harness.call(await harness.sign(call)).catch(() => undefined);
      if (answer === undefined) return;
      const { status, stopReason } = answer;
      const { tool, callId } = call;
      assert.ok(OUTCOMES[tool]?.includes(status), `${tool} ended as ${status} (${stopReason}).`);
      if (status === CallStatus.UNKNOWN) assert.equal(stopReason, `outcome_unknown:${tool}`);
      const before = ended.get(callId)?.status;
      assert.ok(before === undefined || before === status, `${callId} has two different outcomes.`);
      ended.set(callId, { tool, status });
      open.delete(callId);
    };
    let hits = 0;
    let rounds = 0;
    let callsHit = 0;
    for (; hits < kills && rounds < 3 * kills + 10; rounds += 1) {
      for (const [index, tool] of TOOLS.entries()) {
        const callId = `op-${rounds}-${index}`;
        open.set(callId, { tool, callId });
      }
      const point = POINTS[Math.floor(random() * POINTS.length)] ?? 'sent';
      target = { point, callId: `op-${rounds}-${Math.floor(random() * 3)}` };
      const killed = Promise.withResolvers<void>();
      kill = () => {
        target = undefined;
        void harness.kill().then(killed.resolve);
      };
      // Kill the gateway even when the targeted call never reaches the point.
      const latest = setTimeout(kill, 2_000);
      const waits = Array.from(open.values(), () => random() * 8);
      const attempts = Array.from(open.values(), async (call, index) => {
        await after(waits[index] ?? 0);
        await attempt(call);
      });
      if (point === 'sent') setTimeout(() => kill(), random() * 25);
      await killed.promise;
      clearTimeout(latest);
      await Promise.all(attempts);
      const inFlight = harness.inFlight();
      callsHit += inFlight;
      if (inFlight > 0) hits += 1;
      await harness.boot();
    }
    assert.equal(hits, kills, 'Too few kills hit a call between intent and outcome.');
    target = undefined;
    await Promise.all(Array.from(open.values(), attempt));
    assert.equal(open.size, 0, 'A call has no outcome.');
    return {
      ...check(ledger, ended),
      kills: rounds,
      'kills between intent and outcome': hits,
      'destructive calls hit': callsHit,
      'calls without an outcome': open.size,
    };
  } finally {
    await harness.close();
  }
}

/** Compares the outcomes that the callers received with the ledger of the tools. */
function check(
  ledger: string,
  ended: ReadonlyMap<string, { readonly tool: string; readonly status: CallStatus }>,
) {
  const executions = new Map<string, number>();
  const keys = new Map<string, string>();
  for (const line of readFileSync(ledger, 'utf8').trimEnd().split('\n')) {
    const [, callId = '', key = ''] = line.split(' ');
    executions.set(callId, (executions.get(callId) ?? 0) + 1);
    assert.ok((keys.get(callId) ?? key) === key, `${callId} ran with two idempotency keys.`);
    keys.set(callId, key);
  }
  const counts = { done: 0, refused: 0, outcome_unknown: 0 };
  let repeated = 0;
  const executedTwice: string[] = [];
  for (const [callId, { tool, status }] of ended) {
    const times = executions.get(callId) ?? 0;
    if (tool !== 'pay') {
      assert.ok(times > 0, `${callId} of ${tool} succeeded without an execution.`);
      if (times > 1) repeated += 1;
      continue;
    }
    if (times > 1) executedTwice.push(callId);
    if (status === CallStatus.OK) assert.equal(times, 1, `${callId} is done without an execution.`);
    if (status === CallStatus.REFUSED)
      assert.equal(times, 0, `${callId} was refused but executed.`);
    if (status === CallStatus.OK) counts.done += 1;
    else if (status === CallStatus.REFUSED) counts.refused += 1;
    else counts.outcome_unknown += 1;
  }
  assert.deepEqual(executedTwice, [], 'destructive calls executed twice');
  return {
    'destructive calls': counts.done + counts.refused + counts.outcome_unknown,
    ...counts,
    'destructive calls executed twice': executedTwice.length,
    'other calls executed again with the same key': repeated,
  };
}
