import { type AgentKey, isWritError, systemClock } from '@writ/kernel';
import {
  endSessions,
  isPostgresAvailable,
  type PostgresLocation,
  postgresLocation,
} from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import { describe, expect, it, onTestFinished } from 'vitest';
import { numberClientTool, useApproval } from '../src/app/client-tools/number-client-tool.ts';
import {
  findOrInsertToolCall,
  markResultDelivered,
} from '../src/app/tools/find-or-insert-tool-call.ts';
import { ResultsInTransit } from '../src/app/tools/results-in-transit.ts';
import { noteApproval } from '../src/app/waiting-calls/await-decision.ts';
import { issueRetry, takeRetry } from '../src/app/waiting-calls/issue-handles.ts';
import { noteDecision } from '../src/app/waiting-calls/note-decision.ts';
import { WaitingRequests } from '../src/app/waiting-calls/waiting-requests.ts';
import { openProxyStore } from '../src/store/proxy-store.ts';
import { type ToolCallRow, toolCallKeyOf } from '../src/store/tool-calls.ts';

const AGENTS: readonly AgentKey[] = ['run-1', 'run-2', 'run-3'].flatMap((runId) =>
  ['root', 'child'].map((instance) => ({ tenant: 'acme', runId, instance })),
);
const TOOLS = ['pay', 'look'];
const CLIENTS = 8;
const STEPS = 25;

/** Starts an agent-proxy without its listeners. */
async function startReplica(location: PostgresLocation) {
  const store = await openProxyStore(location);
  onTestFinished(() => store.close());
  const clock = systemClock;
  return {
    location,
    store,
    clock,
    waitingRequests: new WaitingRequests(clock),
    deliveries: new ResultsInTransit(),
  };
}

type Replica = Awaited<ReturnType<typeof startReplica>>;

/** Counts events that may happen only once, such as the use of a `requestState`. */
class Seen {
  readonly #counts = new Map<string, number>();

  record(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  get repeated(): readonly string[] {
    return [...this.#counts].flatMap(([what, count]) => (count > 1 ? [what] : []));
  }

  count(prefix: string): number {
    return [...this.#counts.keys()].filter((what) => what.startsWith(prefix)).length;
  }
}

/** Sends a request until its outcome is known, each time to a random replica. */
async function untilKnown<T>(
  replicas: readonly Replica[],
  pick: <E>(list: readonly E[]) => E,
  request: (replica: Replica) => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await request(pick(replicas));
    } catch (error) {
      if (!isWritError(error) || !error.reason.startsWith('STORE_')) throw error;
      expect(error.reason).toMatch(/^STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN)$/);
    }
  }
}

async function runClient(replicas: readonly Replica[], client: number, seen: Seen): Promise<void> {
  const random = seeded(client + 1);
  const pick = <E>(list: readonly E[]): E => list[Math.floor(random() * list.length)] as E;
  const known = <T>(request: (replica: Replica) => Promise<T>) =>
    untilKnown(replicas, pick, request);
  for (let step = 0; step < STEPS; step += 1) {
    if (client === 0 && random() < 0.2) await endSessions(pick(replicas).location);
    const agent = pick(AGENTS);
    const request = { tool: pick(TOOLS), argumentsJson: '{}', clientCallId: '' };
    const row = await known((replica) => findOrInsertToolCall(replica, agent, request));
    const retry = await known((replica) => issueRetry(replica, row, 1));
    const takes = Array.from({ length: 2 }, () => takeOnce(pick(replicas), agent, retry));
    for (const taken of await Promise.all(takes)) if (taken) seen.record(`retry ${retry}`);
    if (random() < 0.5) await known((replica) => markResultDelivered(replica, row));
    await decideClientTool({ known, agent, seen, id: `c${client}-${step}` });
  }
}

/** Uses a `requestState`; returns false when another request has used it, or when the store reports an error. */
async function takeOnce(replica: Replica, agent: AgentKey, retry: string): Promise<boolean> {
  try {
    await takeRetry(replica, agent, retry);
    return true;
  } catch (error) {
    if (!isWritError(error)) throw error;
    expect(error.reason).toMatch(/^(INVALID_REQUEST_STATE|STORE_.*)$/);
    return false;
  }
}

interface Client {
  readonly known: <T>(request: (replica: Replica) => Promise<T>) => Promise<T>;
  readonly agent: AgentKey;
  readonly seen: Seen;
  readonly id: string;
}

/**
 * Creates a client tool call that waits for a person, decides its approval, and uses the approval for one call of the
 * model.
 */
async function decideClientTool({ known, agent, seen, id }: Client): Promise<void> {
  const request = {
    tool: 'shell',
    argumentsJson: '{"command":"ls"}',
    toolUseId: id,
    modelCallId: '',
    definitionDigest: '',
  };
  const row = await known((replica) => numberClientTool(replica, agent, request));
  const call = toolCallKeyOf(row);
  await known((replica) => noteApproval(replica, call, `approval-of-${call.callId}`));
  if (await known((replica) => noteDecision(replica, call))) seen.record(`decision ${call.callId}`);
  if (await known((replica) => useApproval(replica, row, id))) seen.record(`use ${call.callId}`);
}

describe.runIf(isPostgresAvailable())('agent-proxies on one PostgreSQL schema', () => {
  it('number equal calls consecutively and accept each retry and approval once, even when database sessions are lost (AP-4, AP-5, SYS-5)', async () => {
    const location = await postgresLocation();
    const replicas = [
      await startReplica(location),
      await startReplica(location),
      await startReplica(location),
    ];
    const seen = new Seen();
    await Promise.all(
      Array.from({ length: CLIENTS }, (_, client) => runClient(replicas, client, seen)),
    );
    expect(seen.repeated).toEqual([]);
    for (const what of ['retry', 'decision', 'use']) expect(seen.count(what)).toBeGreaterThan(20);
    const [{ store }] = replicas as [Replica];
    const rows = await store.db.selectFrom('tool_calls').selectAll().orderBy('number').execute();
    const ofTools = rows.filter(({ tool }) => tool !== 'shell');
    for (const equal of Object.values(Object.groupBy(ofTools, groupOf))) {
      const numbers = equal?.map(({ number }) => number) ?? [];
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
      // A call gets a new number only after the previous equal call was delivered.
      expect(equal?.slice(0, -1).every(({ delivered }) => delivered)).toBe(true);
    }
    expect(ofTools.length).toBeGreaterThan(AGENTS.length * TOOLS.length);
  });
});

function groupOf({ run_id, instance, digest }: ToolCallRow): string {
  return `${run_id}/${instance}/${digest}`;
}
