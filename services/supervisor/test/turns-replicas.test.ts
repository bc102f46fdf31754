import { readFileSync } from 'node:fs';
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ControlService,
  type HaltRequestSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Decision, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError } from '@writ/kernel';
import {
  endSessions,
  isPostgresAvailable,
  type PostgresLocation,
  postgresLocation,
} from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';
import { exportLines, verifyWith } from './audit-export.ts';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  type Proposal,
  RefundHarness,
  refund,
  TestAgent,
} from './refund-harness.ts';
import { exampleFile } from './refund-tools.ts';

const CLIENTS = 5;
const RUNS_OF_CLIENT = 2;
const HALTS = 4;
const PROPOSALS = [LOOK_UP, refund(10), refund(20)];
const MAX_RUNS = 5;

async function startHarness(store: PostgresLocation) {
  const config = { store, maxRunsPerTenant: MAX_RUNS, agents: agentsWithMoreTime() };
  const harness = await RefundHarness.start({ config });
  onTestFinished(() => harness.close());
  return harness;
}

/**
 * The agents of the example with a higher limit of active time, which includes the retries of their calls on a busy
 * machine.
 */
function agentsWithMoreTime(): { readonly text: string; readonly file: string } {
  const file = exampleFile('agents.yaml');
  const text = readFileSync(file, 'utf8').replaceAll('max_seconds: 30', 'max_seconds: 600');
  return { text, file };
}

/** Resolves with the root agent of a run when it was delivered. */
async function delivered(harness: RefundHarness, runId: string): Promise<TestAgent> {
  const find = () =>
    harness.supervisor.fakes.deliveries.find((each) => each.supervision?.runId === runId);
  await expect.poll(find).toBeDefined();
  return new TestAgent(harness, find() as NonNullable<ReturnType<typeof find>>);
}

/** Rejects a commit of the supervisors after which a tenant has more runs than its quota. */
async function rejectExceededQuota(store: SupervisorStore): Promise<void> {
  const body = `begin
    if (select count(*) from runs where tenant = new.tenant and ended_at is null) > ${MAX_RUNS}
    then raise exception 'quota of % exceeded', new.tenant; end if;
    return null; end`;
  await store.transaction(async (trx) => {
    await sql`create function within_quota() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql`create constraint trigger within_quota after insert on runs
      deferrable initially deferred for each row execute function within_quota()`.execute(trx);
  });
}

/**
 * Errors after which a client repeats its request, to any supervisor. A supervisor that has just lost its database
 * connections reports NOT_SERVING until it has opened new connections, which takes longer than a deadline on a busy
 * machine.
 */
const RETRIED =
  /^(UNAVAILABLE|DEADLINE_EXCEEDED|STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN|TRANSACTION_TIMEOUT)|HALTED|HALT_PENDING|RESUME_PENDING|RUN_QUOTA_EXCEEDED|START_QUEUE_FULL)$/;

async function repeated<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!isWritError(error) || !RETRIED.test(error.reason)) throw error;
    }
  }
}

/** Random requests of several clients to several supervisors. */
class Schedule {
  readonly #harness: RefundHarness;
  readonly #location: PostgresLocation;
  readonly #supervisors: readonly { readonly address: string; readonly edgeAddress: string }[];
  /** The acknowledged halt of the tenant; undefined as soon as the request that lifts it is sent. */
  #halt: string | undefined;
  readonly runIds: string[] = [];
  readonly decisions: Decision[] = [];
  readonly begunAfterHalt: string[] = [];

  constructor(
    harness: RefundHarness,
    location: PostgresLocation,
    supervisors: readonly { readonly address: string; readonly edgeAddress: string }[],
  ) {
    this.#harness = harness;
    this.#location = location;
    this.#supervisors = supervisors;
  }

  /**
   * Starts runs, each with two concurrent requests that have the same id, and lets their agents act until the runs are
   * cancelled.
   */
  async runClient(client: number): Promise<void> {
    const random = seeded(client + 1);
    const any = () => this.#supervisors[Math.floor(random() * this.#supervisors.length)];
    const runs = () => this.#harness.supervisor.runs('anna', any()?.edgeAddress);
    for (let count = 0; count < RUNS_OF_CLIENT; count += 1) {
      const name = `${client}-${count}`;
      const start = { requestId: `start-${name}`, agent: 'refund-worker', goal: 'Refund it.' };
      const started = await Promise.all([
        repeated(() => runs().startRun(start)),
        repeated(() => runs().startRun(start)),
      ]);
      const [runId = '', other] = started.map(({ run }) => run?.runId);
      expect(other).toBe(runId);
      this.runIds.push(runId);
      await this.#act(await delivered(this.#harness, runId), random);
      if (random() < 0.5) await endSessions(this.#location);
      await repeated(() => runs().cancelRun({ requestId: `cancel-${name}`, runId }));
    }
  }

  async #act(agent: TestAgent, random: () => number): Promise<void> {
    const any = () => this.#supervisors[Math.floor(random() * this.#supervisors.length)];
    let receipts: string[] = [];
    for (const [n, proposal] of PROPOSALS.entries()) {
      const request = { ...proposal, callId: `op-${n}`, receipts };
      const propose = () => repeated(() => this.#propose(agent, any()?.address ?? '', request));
      const [decision, again] = await Promise.all([propose(), propose()]);
      expect(again.decisionId).toBe(decision.decisionId);
      this.decisions.push(decision);
      expect(decision.verdict).toBe(Verdict.APPROVE);
      receipts = [await agent.receipt(decision, CONTEXT)];
    }
    await repeated(() => this.#harness.report(...receipts));
  }

  async #propose(
    agent: TestAgent,
    address: string,
    request: Proposal & { readonly callId: string },
  ): Promise<Decision> {
    const options = await agent.options();
    const before = this.#halt;
    const { decision } = await agent.reviewsAt(address).reviewAction(request, options);
    if (before !== undefined && before === this.#halt) this.begunAfterHalt.push(request.callId);
    if (decision === undefined) throw new Error('The response has no decision.');
    return decision;
  }

  /** Halts the tenant and lifts the halt, several times; every supervisor rejects proposals of `agent` in between. */
  async runHalts(agent: TestAgent): Promise<void> {
    const { supervisor } = this.#harness;
    const random = seeded(99);
    for (let count = 0; count < HALTS; count += 1) {
      const { edgeAddress } =
        this.#supervisors[Math.floor(random() * this.#supervisors.length)] ?? {};
      const control = supervisor.as('anna', ControlService, edgeAddress);
      const order: MessageInitShape<typeof HaltRequestSchema> = {
        requestId: `halt-${count}`,
        scope: { kind: { case: 'tenant', value: 'acme' } },
        reason: 'A test.',
      };
      const { halt } = await repeated(() => control.halt(order));
      const haltId = halt?.haltId ?? '';
      this.#halt = haltId;
      const request = { ...LOOK_UP, callId: `halted-${count}` };
      for (const { address } of this.#supervisors) await rejectedByHalt(agent, address, request);
      this.#halt = undefined;
      await repeated(() => control.resume({ requestId: `resume-${count}`, haltId }));
    }
  }
}

/** Proposes until the supervisor can read its store, and expects that the supervisor rejects the proposal. */
async function rejectedByHalt(
  agent: TestAgent,
  address: string,
  request: Proposal & { readonly callId: string },
): Promise<void> {
  const options = await agent.options();
  for (;;) {
    const outcome = agent.reviewsAt(address).reviewAction(request, options);
    const reason = await outcome.then(
      () => 'approved',
      (error: unknown) => (isWritError(error) ? error.reason : String(error)),
    );
    if (/^(UNAVAILABLE|DEADLINE_EXCEEDED|STORE_)/.test(reason)) continue;
    expect(reason).toBe('HALTED');
    return;
  }
}

describe.runIf(isPostgresAvailable())('supervisors on one PostgreSQL schema', () => {
  it('start, review, record receipts, audit and end a run while a transaction of another run is open (SYS-5, HK-1, SV-8)', async () => {
    const location = await postgresLocation();
    const harness = await startHarness(location);
    // The transaction stays open for as long as the run takes on a busy machine.
    const limits = { statementTimeoutMs: 100_000 };
    const store = await openSupervisorStore({ ...location, limits }, () => undefined);
    onTestFinished(() => store.close());
    const released = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const held = store.transaction(
      async () => {
        begun.resolve();
        await released.promise;
      },
      { run: { tenant: 'acme', runId: 'another-run' } },
    );
    await begun.promise;
    const agent = await harness.agent();
    const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    expect(await harness.report(receipt)).toHaveLength(1);
    await agent.propose('op-2', finalText('Done.'), { receipts: [receipt] });
    expect((await harness.ended(agent)).state).toBe(RunState.COMPLETED);
    const lines = await exportLines(harness.supervisor);
    const { dataDir } = harness.supervisor.config;
    expect(await verifyWith(dataDir, lines)).toMatchObject({ holds: true });
    expect(lines.some((line) => line.includes('run_ended'))).toBe(true);
    released.resolve();
    await held;
  });

  it('keep quotas, halts, decisions, timelines and chains, with lost sessions (SYS-5, SYS-6, SV-8, SV-9, HK-1)', async () => {
    const location = await postgresLocation();
    const harness = await startHarness(location);
    const { supervisor } = harness;
    const others = [await supervisor.startReplica(), await supervisor.startReplica()];
    const store = await openSupervisorStore(location, () => undefined);
    onTestFinished(() => store.close());
    await rejectExceededQuota(store);
    const schedule = new Schedule(harness, location, [supervisor.service, ...others]);
    const halted = await harness.agent();
    const halts = schedule.runHalts(halted);
    const clients = Array.from({ length: CLIENTS }, (_, client) => schedule.runClient(client));
    await Promise.all([...clients, halts]);
    const { runId } = halted.scope;
    await supervisor.runs().cancelRun({ requestId: 'cancel-halted', runId });

    expect(schedule.begunAfterHalt).toEqual([]);
    const runIds = [...schedule.runIds, runId];
    expect(new Set(runIds).size).toBe(CLIENTS * RUNS_OF_CLIENT + 1);
    const states = async () => {
      const rows = await store.db.selectFrom('runs').select(['run_id', 'state']).execute();
      return new Set(rows.map(({ state }) => state));
    };
    await expect.poll(states).toEqual(new Set(['CANCELLED']));
    const rows = await store.db.selectFrom('runs').select('run_id').execute();
    expect(rows.map(({ run_id: id }) => id).toSorted()).toEqual(runIds.toSorted());
    await assertTimelines(store, runIds);
    const decisions = await store.db.selectFrom('decisions').select('decision_id').execute();
    expect(decisions.map((row) => row.decision_id).toSorted()).toEqual(
      schedule.decisions.map(({ decisionId }) => decisionId).toSorted(),
    );
    const lines = await exportLines(supervisor);
    expect(await verifyWith(supervisor.config.dataDir, lines)).toMatchObject({ holds: true });
    const audited = (kind: string) =>
      lines.filter((line) => line.includes(`"kind":"${kind}"`)).length;
    expect(audited('run_started')).toBe(runIds.length);
    expect(audited('run_ended')).toBe(runIds.length);
    expect(audited('decision')).toBe(schedule.decisions.length);
  });
});

/** Checks that each timeline has the numbers from 1 on, without gaps. */
async function assertTimelines({ db }: SupervisorStore, runIds: readonly string[]): Promise<void> {
  const entries = await db
    .selectFrom('timeline')
    .select(['run_id', 'sequence'])
    .orderBy('sequence')
    .execute();
  const timelines = Map.groupBy(entries, ({ run_id: runId }) => runId);
  expect([...timelines.keys()].toSorted()).toEqual(runIds.toSorted());
  for (const timeline of timelines.values()) {
    expect(timeline.length).toBeGreaterThan(3);
    expect(timeline.map(({ sequence }) => sequence)).toEqual(timeline.map((_, n) => n + 1));
  }
}
