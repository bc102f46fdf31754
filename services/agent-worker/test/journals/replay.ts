import { createInProcessBus } from '@writ/bus';
import { canonicalDigest, type HistoryProvider, systemClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { createView } from '../../src/agents/chat/context-strategies.ts';
import { agentCode } from '../../src/agents/index.ts';
import type { AgentModules } from '../../src/agents/load-modules.ts';
import { middlewareRegistry, withMiddleware } from '../../src/agents/middleware/index.ts';
import { withGuardrails } from '../../src/agents/with-guardrails.ts';
import { AGENT_WORKER_DEFAULTS } from '../../src/config.ts';
import { callIdOf, readRecordedKind } from '../../src/domain/journal/entry.ts';
import { createWorkerEvents } from '../../src/events.ts';
import type { WorkerPeers } from '../../src/peers/peers.ts';
import { createProgressPublisher } from '../../src/peers/progress-publisher.ts';
import { LeaseSession } from '../../src/runtime/leases/lease-session.ts';
import { type RunParts, runAgent } from '../../src/runtime/run-agent.ts';
import { Drained } from '../../src/runtime/unwinding.ts';
import { type AgentRow, findAgent, insertAgent } from '../../src/store/agents.ts';
import { claimAgent } from '../../src/store/claims.ts';
import { insertMessage } from '../../src/store/inbox.ts';
import { appendJournal } from '../../src/store/journal.ts';
import { insertSignal } from '../../src/store/signals.ts';
import { appendItems, saveSnapshot } from '../../src/store/snapshots.ts';
import type { WorkerStore } from '../../src/store/worker-store.ts';
import { RUN, TRACEPARENT } from '../delivery.ts';
import type { RecordedAgent, RecordedEntry } from './recorded-agent.ts';

const FAR = Date.UTC(2100, 0);

/** The point from which a replay resumes an agent. */
export interface ResumePoint {
  /**
   * Number of recorded entries that the store contains when the replay starts; the replay must produce the remaining
   * entries.
   */
  readonly entries: number;
  /** Whether the checkpoint is stored; otherwise the agent is replayed from its beginning. */
  readonly fromCheckpoint: boolean;
}

/** The result of a replay. */
export interface Replayed {
  /**
   * The stop reason; `drained` when the recorded answers were used up before the agent ended; or another lease outcome.
   */
  readonly outcome: string;
  /** `branch/position.part kind digest` of each entry. */
  readonly entries: readonly string[];
}

/** Describes an entry by its place and operation. */
export function lineOf(
  entry: Pick<RecordedEntry, 'branch' | 'position' | 'part' | 'kind' | 'args_digest'>,
): string {
  const { branch, position, part, kind, args_digest: digest } = entry;
  return `${branch}/${position}.${part} ${kind} ${digest.slice(0, 12)}`;
}

/**
 * Resumes a recorded agent on the current code. Before the replay, the store contains the rows that the worker had
 * stored at `point`, and the signals that the agent consumed after `point`. The fake services return the recorded
 * answers.
 * @param tenant separates the replays in one store
 */
export async function replay(
  store: WorkerStore,
  modules: AgentModules,
  recorded: RecordedAgent,
  { tenant, point }: { readonly tenant: string; readonly point: ResumePoint },
): Promise<Replayed> {
  const key = { tenant, runId: RUN, instance: recorded.agent.instance };
  const kept = recorded.entries.slice(0, point.entries);
  const left = recorded.entries.slice(point.entries);
  await store.transaction((trx) => restoreRows(trx, recorded, { key, point, kept, left }));
  const terms = { owner: 'replay', at: new Date(), expiresAt: new Date(FAR) };
  const row = await store.transaction((trx) => claimAgent(trx, key, terms));
  if (row === undefined) throw new Error(`${key.instance} cannot be claimed.`);
  const readAt = left.find(({ kind }) => readRecordedKind(kind).kind === 'now')?.value;
  const clock =
    typeof readAt === 'number' ? { ...systemClock, now: () => new Date(readAt) } : systemClock;
  const session = new LeaseSession(row, {
    store,
    clock,
    sharedNow: () => clock.now(),
    leaseTtlMs: 3_600_000,
  });
  const outcome = await runAgent(partsOf(store, modules, recorded, left), session);
  const rows = await store.db
    .selectFrom('journal')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('instance', '=', key.instance)
    .execute();
  const after = await findAgent(store.db, key);
  return { outcome: after?.stop_reason ?? outcome, entries: rows.map(lineOf) };
}

type Transaction = Parameters<typeof insertAgent>[0];

async function restoreRows(
  trx: Transaction,
  { agent, inbox, signals, checkpoint }: RecordedAgent,
  parts: {
    readonly key: { readonly tenant: string; readonly runId: string; readonly instance: string };
    readonly point: ResumePoint;
    readonly kept: readonly RecordedEntry[];
    readonly left: readonly RecordedEntry[];
  },
): Promise<void> {
  const { key, point, kept, left } = parts;
  const at = new Date();
  const token = 'replayed';
  const credentials = {
    supervisor: token,
    spawnBudget: token,
    executionMeter: token,
    toolGateway: token,
    expiresAt: FAR,
  };
  const row: AgentRow = {
    ...agent,
    tenant: key.tenant,
    run_id: key.runId,
    request_id: 'deliver',
    request_digest: '',
    state: 'RUNNING',
    stop_reason: null,
    waiting_for: '[]',
    wake_at: null,
    waiting_since: null,
    epoch: 1n,
    lease_owner: null,
    lease_expires_at: null,
    credentials: JSON.stringify(credentials),
    deadline_at: null,
    traceparent: TRACEPARENT,
    last_traceparent: null,
    journal_length: kept.length,
    step_started: 0,
    step_ended: 0,
    first_reads: null,
    unreported_events: '[]',
    failures: 0,
    failed_length: 0,
    partial_final: null,
    created_at: at,
    ended_at: null,
  };
  await insertAgent(trx, row);
  for (const message of inbox) {
    await insertMessage(trx, key, message as Parameters<typeof insertMessage>[2], at);
  }
  const entries = kept.map(({ args_digest: argsDigest, kind, ...entry }) => ({
    ...entry,
    ...readRecordedKind(kind),
    argsDigest,
  }));
  await appendJournal(trx, { ...key, epoch: 1n }, entries, at);
  await insertPendingSignals(trx, key, signals, left);
  if (!point.fromCheckpoint || checkpoint === undefined) return;
  const { items, state, receipts, ...place } = checkpoint;
  await appendItems(trx, key, 0, items);
  await saveSnapshot(trx, {
    tenant: key.tenant,
    run_id: key.runId,
    instance: key.instance,
    ...place,
    items: items.length,
    state: JSON.stringify(state),
    receipts: JSON.stringify(receipts),
    saved_at: at,
  });
}

/** Stores the signals that the recorded agent consumed after `point`, so that they are already pending. */
async function insertPendingSignals(
  trx: Transaction,
  { tenant, runId, instance }: { tenant: string; runId: string; instance: string },
  names: readonly string[],
  left: readonly RecordedEntry[],
): Promise<void> {
  const nameOf = new Map(names.map((name) => [canonicalDigest({ name }), name]));
  for (const [index, { kind, args_digest: digest, value }] of left.entries()) {
    if (readRecordedKind(kind).kind !== 'signal') continue;
    const { payload, decision } = value as { payload: string; decision: string | null };
    await insertSignal(trx, {
      tenant,
      run_id: runId,
      instance,
      request_id: `signal-${index}`,
      request_digest: '',
      name: nameOf.get(digest) ?? `unknown:${digest}`,
      payload,
      decision,
      received_at: new Date(),
      sender: null,
      consumed_at: null,
    });
  }
}

function partsOf(
  store: WorkerStore,
  modules: AgentModules,
  recorded: RecordedAgent,
  left: readonly RecordedEntry[],
): RunParts {
  const telemetry = createTelemetry({ service: 'agent-worker', logLevel: 'silent' });
  const code = agentCode(modules);
  const middleware = middlewareRegistry(modules.middleware);
  const log = telemetry.log;
  const earlier = recorded.entries.find(({ kind }) => kind === 'recall')?.value ?? [];
  const history = {
    load: async () => earlier,
    save: async () => undefined,
  } as unknown as HistoryProvider;
  return {
    store,
    peers: recordedPeers(recorded, left),
    slots: { hold: () => HELD as never, release: () => undefined },
    events: createWorkerEvents(telemetry),
    telemetry,
    publisher: createProgressPublisher(createInProcessBus({ onError: () => undefined }), log),
    factoryOf: (...which) => {
      const factory = code.factoryOf(...which);
      return factory && withGuardrails(withMiddleware(factory, middleware));
    },
    checkModules: (manifest) => void createView(manifest, modules.strategies),
    historyOf: () => history,
    settings: {
      ...AGENT_WORKER_DEFAULTS,
      parkMs: 3_600_000,
      restartMs: 3_600_000,
      retryAt: (delayMs) => new Date(Date.now() + delayMs),
    },
    onEvents: () => undefined,
    onRunnable: () => undefined,
  };
}

/** A slot that is never lost. */
const HELD = { current: 'grant', grant: async () => 'grant', renewed: async () => undefined };

/**
 * Fake services that return the recorded answers after the resume point. If a review, a call of the model or of a tool,
 * a tool list, or the spawn or end of a child has no recorded answer, the call throws `Drained`, as during a shutdown
 * of the worker.
 */
function recordedPeers({ entries }: RecordedAgent, left: readonly RecordedEntry[]): WorkerPeers {
  const answers = [...left];
  const take = (kind: string, callId?: string): unknown => {
    const at = answers.findIndex(
      (entry) =>
        readRecordedKind(entry.kind).kind === kind &&
        (callId === undefined || callIdOf(entry) === callId),
    );
    if (at === -1) throw new Drained(`The recording has no ${kind} ${callId}.`);
    return answers.splice(at, 1)[0]?.value;
  };
  const withWrit = (decision: unknown) => ({
    ...(decision as object),
    writ: 'writ',
    writExpiresAt: FAR,
  });
  const peers = {
    supervisor: {
      reviewAction: async ({ callId }: { callId: string }) => take('review', callId),
      getDecision: async (callId: string) =>
        withWrit(entries.find((one) => one.kind === 'review' && callIdOf(one) === callId)?.value),
      spawnChild: async ({ callId }: { callId: string }) => take('spawn', callId),
      endChild: async ({ callId }: { callId: string }) => take('end', callId),
      reportOutcome: async ({ stopReason }: { stopReason: string }) => ({ stopReason }),
    },
    executionMeter: {
      generate: async ({ callId }: { callId: string }) => take('llm', callId),
      listModels: async () => [],
    },
    toolGateway: {
      listTools: async () => take('tools'),
      callTool: async ({ callId }: { callId: string }) => take('tool', callId),
    },
  };
  return peers as unknown as WorkerPeers;
}
