import {
  type AgentKind,
  type CodeWait,
  codeWaitSentence,
  type HistoryProvider,
  isStopReason,
  isWritError,
  outcomeOf,
  type TerminalState,
} from '@writ/kernel';
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_AGENT_ID,
  ATTR_GEN_AI_AGENT_NAME,
  ATTR_GEN_AI_CONVERSATION_ID,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_WRIT_EPOCH,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_STOP_REASON,
  ATTR_WRIT_TENANT,
  contextFromTraceparent,
  GenAiOperation,
  invokeAgentSpan,
  type Link,
  SpanStatusCode,
  type Telemetry,
  trace,
  traceparentOf,
  withSpan,
} from '@writ/telemetry';
import { readEvents } from '../domain/agent/carried-event.ts';
import type { AgentCredentials } from '../domain/agent/credentials.ts';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { WorkerEvents } from '../events.ts';
import type { WorkerPeers } from '../peers/peers.ts';
import type { ProgressPublisher } from '../peers/progress-publisher.ts';
import { loadInbox } from '../store/inbox.ts';
import { loadJournal } from '../store/journal.ts';
import { findSnapshot } from '../store/snapshots.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import type { Agent, AgentFactory } from './agent.ts';
import { RuntimeContext } from './context.ts';
import { Credentials } from './credentials.ts';
import { stopOnRefusal } from './execute-tool.ts';
import { Checkpoints } from './journal/checkpoints.ts';
import { Commits } from './journal/commits.ts';
import { Journal } from './journal/journal.ts';
import {
  type EndingSettings,
  endReturned,
  endThrown,
  type LeaseOutcome,
} from './leases/lease-outcome.ts';
import type { LeaseSession } from './leases/lease-session.ts';
import { CODE_WAIT } from './leases/wait-for-code.ts';
import { type CallSettings, PeerCalls } from './peer-calls.ts';
import { PendingReceipts } from './pending-receipts.ts';
import { AgentProgress } from './progress.ts';
import type { RunScope } from './scope.ts';
import { SessionHistory } from './session-history.ts';
import type { SlotRenewer } from './slots/slot-renewer.ts';
import { Steps } from './steps.ts';
import { CodeMismatched, Unwinding } from './unwinding.ts';

/** Outcomes of a lease after which the agent is inactive and must be reported to spawn-budget. */
const INACTIVE: ReadonlySet<LeaseOutcome> = new Set(['suspended', 'preempted', CODE_WAIT]);

/** Dependencies of {@link runAgent}. */
export interface RunParts {
  readonly store: WorkerStore;
  readonly peers: WorkerPeers;
  readonly slots: Pick<SlotRenewer, 'hold' | 'release'>;
  readonly events: WorkerEvents;
  readonly telemetry: Telemetry;
  readonly publisher: ProgressPublisher;
  /**
   * Returns the factory for agents of a kind and name; undefined when this worker lacks the version
   * of the code with which the agent started.
   */
  readonly factoryOf: (kind: AgentKind, name: string, version: string) => AgentFactory | undefined;
  /**
   * Checks that this worker has the strategies and the history provider of a manifest.
   * @throws InvalidRequestError naming the setting
   */
  readonly checkModules: (manifest: AgentManifest) => void;
  /** Returns the history provider of a manifest; undefined for the worker's own store. */
  readonly historyOf: (manifest: AgentManifest) => HistoryProvider | undefined;
  readonly settings: CallSettings &
    EndingSettings & { readonly modelTimeoutMs: number; readonly toolTimeoutMs: number };
  /** Called after a commit that may have written to the outbox. */
  readonly onEvents: () => void;
  /** Called when another agent may have become runnable. */
  readonly onRunnable: () => void;
}

/**
 * Runs an agent for one lease: replays its journal, from the latest checkpoint if the agent restores it, and continues
 * until the agent ends, is suspended or parked, loses the lease, or the worker shuts down. Returns the result.
 * @throws errors of the store
 */
export async function runAgent(parts: RunParts, session: LeaseSession): Promise<LeaseOutcome> {
  const { row } = session;
  const options = {
    parent: contextFromTraceparent(row.traceparent),
    links: linksTo(row.last_traceparent),
    attributes: {
      [ATTR_GEN_AI_OPERATION_NAME]: GenAiOperation.invokeAgent,
      [ATTR_GEN_AI_AGENT_ID]: row.instance,
      [ATTR_GEN_AI_AGENT_NAME]: row.name,
      [ATTR_GEN_AI_CONVERSATION_ID]: row.session_id,
      [ATTR_WRIT_TENANT]: row.tenant,
      [ATTR_WRIT_RUN_ID]: row.run_id,
      [ATTR_WRIT_EPOCH]: String(row.epoch),
    },
  };
  return await withSpan(
    parts.telemetry.tracer,
    invokeAgentSpan(row.name),
    options,
    async (span) => {
      session.traceparent = traceparentOf();
      parts.events.leaseBegan(row.last_traceparent !== null);
      let outcome: LeaseOutcome | undefined;
      try {
        outcome = await runToAnEnd(parts, session);
      } finally {
        parts.slots.release(session, INACTIVE.has(outcome ?? ''));
      }
      span.setAttribute(ATTR_WRIT_STOP_REASON, outcome);
      if (isFailure(outcome)) {
        span.setAttribute(ATTR_ERROR_TYPE, outcome);
        span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
      }
      parts.events.leaseEnded(outcome);
      return outcome;
    },
  );
}

async function runToAnEnd(parts: RunParts, session: LeaseSession): Promise<LeaseOutcome> {
  const scope = await openScope(parts, session);
  const { row } = session;
  const ids = { tenant: row.tenant, run_id: row.run_id, agent: row.instance };
  const context = new RuntimeContext(scope, parts.telemetry.log);
  let thrown: unknown;
  try {
    scope.progress.publishState('RUNNING');
    if (session.mustFence) await fencePreviousWorker(scope);
    const { lease, message } = session;
    const inbox = message === undefined ? await loadInbox(parts.store.db, lease) : [message];
    await createAgent(parts, session).run(context, inbox);
    return await endReturned(scope, context, parts.settings);
  } catch (error) {
    // The agent may have wrapped the unwinding in another error.
    thrown = error instanceof Unwinding ? error : (context.unwinding ?? error);
  }
  // An unwinding can also interrupt the report of the outcome.
  for (;;) {
    if (thrown instanceof CodeMismatched) {
      parts.telemetry.log.warn(
        { ...ids, name: row.name, mismatch: thrown.wait.mismatch, detail: thrown.message },
        'agent parked because its code does not match',
      );
      const span = trace.getActiveSpan();
      span?.setAttribute(ATTR_ERROR_TYPE, thrown.wait.mismatch);
      span?.setStatus({ code: SpanStatusCode.ERROR, message: thrown.message });
    }
    try {
      return await endThrown(scope, thrown, parts.settings);
    } catch (error) {
      if (!(error instanceof Unwinding)) throw error;
      thrown = error;
    }
  }
}

/**
 * Makes the supervisor, the execution-meter and the tool-gateway reject calls of the previous worker of the agent
 * before this worker acts (RT-2).
 */
async function fencePreviousWorker({ session, calls, peers }: RunScope): Promise<void> {
  for (const audience of ['supervisor', 'executionMeter', 'toolGateway'] as const) {
    await stopOnRefusal('worker', undefined, () =>
      calls.call({ audience }, (options) => peers[audience].admitEpoch(options)),
    );
  }
  session.mustFence = false;
}

/**
 * Creates the agent with the code with which it started.
 * @throws CodeMismatched when this worker lacks that code, or rejects its settings (RT-1)
 */
function createAgent(
  { factoryOf, checkModules }: RunParts,
  { row, manifest }: LeaseSession,
): Agent {
  const { name, instance, code_version: version } = row;
  try {
    const factory = factoryOf(manifest.kind, manifest.name, version);
    // The agent itself would find a missing strategy or provider only at a later operation.
    checkModules(manifest);
    if (factory !== undefined) return factory(manifest, instance);
  } catch (error) {
    if (!isWritError(error)) throw error;
    const isMissing = error.reason === 'AGENT_FACTORY_MISSING';
    const wait: CodeWait = isMissing
      ? { mismatch: 'agent_missing', subject: name }
      : { mismatch: 'setting_rejected', subject: error.reason };
    throw new CodeMismatched(wait, error.message);
  }
  const wait: CodeWait = { mismatch: 'version_missing', subject: version };
  throw new CodeMismatched(wait, codeWaitSentence(instance, wait));
}

async function openScope(parts: RunParts, session: LeaseSession): Promise<RunScope> {
  const { store, peers, slots, events, onEvents, onRunnable, settings } = parts;
  const { row, lease, meta } = session;
  // Nothing is journaled before the first lease.
  const isFirst = lease.epoch === 1n;
  const latest = isFirst ? undefined : await findSnapshot(store.db, lease);
  const journal = new Journal({
    agent: row.instance,
    entries: isFirst ? [] : await loadJournal(store.db, lease, latest?.segment ?? 1),
    length: row.journal_length,
    foldedAt: latest,
  });
  const carried = new PendingReceipts(readEvents(row.unreported_events));
  const progress = new AgentProgress(session, parts.publisher);
  const commits = new Commits({ session, journal, events, onEvents, progress, carried });
  session.flush = () => commits.commit();
  const credentials = new Credentials({
    initial: JSON.parse(row.credentials ?? '{}') as AgentCredentials,
    now: () => meta.clock.now().getTime(),
    refresh: (agentToken) =>
      calls.call({ afterDeadline: true }, (call) =>
        peers.supervisor.refreshTokens({ ...call, agentToken }),
      ),
    save: (fresh) => session.write({ credentials: JSON.stringify(fresh) }, async () => undefined),
  });
  const slot = slots.hold(session, credentials);
  const calls = new PeerCalls({ session, credentials, slot, settings });
  return {
    session,
    journal,
    cursor: journal.cursor(''),
    commits,
    steps: new Steps(session, commits, progress),
    progress,
    calls,
    carried,
    history: new SessionHistory({
      session,
      store,
      findProvider: () => parts.historyOf(session.manifest),
      timeoutMs: settings.callTimeoutMs,
      restartMs: settings.restartMs,
      log: parts.telemetry.log,
    }),
    checkpoints: new Checkpoints({ session, journal, commits, carried, store, latest }),
    peers,
    store,
    events,
    onRunnable,
    modelTimeoutMs: settings.modelTimeoutMs,
    toolTimeoutMs: settings.toolTimeoutMs,
  };
}

/** The terminal states that a trace shows as errors. A cancelled or halted agent is not an error. */
const FAILED: ReadonlySet<TerminalState> = new Set([
  'ERROR',
  'BLOCKED',
  'BUDGET_EXCEEDED',
  'MAX_STEPS',
  'TIMED_OUT',
]);

function isFailure(outcome: LeaseOutcome): boolean {
  return isStopReason(outcome) && FAILED.has(outcomeOf(outcome).state);
}

function linksTo(traceparent: string | null): Link[] {
  if (traceparent === null) return [];
  const context = trace.getSpanContext(contextFromTraceparent(traceparent));
  return context === undefined ? [] : [{ context }];
}
