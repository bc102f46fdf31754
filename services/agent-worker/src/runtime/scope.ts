import type { WorkerEvents } from '../events.ts';
import type { WorkerPeers } from '../peers/peers.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import type { Checkpoints } from './journal/checkpoints.ts';
import type { Commits } from './journal/commits.ts';
import type { BranchCursor, Journal } from './journal/journal.ts';
import type { LeaseSession } from './leases/lease-session.ts';
import type { PeerCalls } from './peer-calls.ts';
import type { PendingReceipts } from './pending-receipts.ts';
import type { AgentProgress } from './progress.ts';
import type { SessionHistory } from './session-history.ts';
import type { Steps } from './steps.ts';

/** Everything that belongs to one lease of one agent. */
export interface RunScope {
  readonly session: LeaseSession;
  readonly journal: Journal;
  /** Numbers the operations of the current branch. */
  readonly cursor: BranchCursor;
  readonly commits: Commits;
  readonly checkpoints: Checkpoints;
  readonly steps: Steps;
  /** Publishes live progress. */
  readonly progress: AgentProgress;
  readonly calls: PeerCalls;
  readonly carried: PendingReceipts;
  readonly peers: WorkerPeers;
  readonly store: WorkerStore;
  readonly history: SessionHistory;
  readonly events: WorkerEvents;
  /** Called when another agent may have become runnable. */
  readonly onRunnable: () => void;
  /** Timeout of one model call, including all its attempts, in milliseconds. */
  readonly modelTimeoutMs: number;
  /** Timeout of one tool call, in milliseconds. */
  readonly toolTimeoutMs: number;
}
