import type { WorkerEvents } from '../events.ts';
import type { WorkerPeers } from '../peers/peers.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { Commits } from './commits.ts';
import type { BranchCursor, Journal } from './journal.ts';
import type { PeerCalls } from './peer-calls.ts';
import type { PendingReceipts } from './pending-receipts.ts';
import type { AgentProgress } from './progress.ts';
import type { Session } from './session.ts';
import type { Steps } from './steps.ts';

/** Everything that belongs to one lease of one agent. */
export interface RunScope {
  readonly session: Session;
  readonly journal: Journal;
  /** Numbers the operations of the branch at hand. */
  readonly cursor: BranchCursor;
  readonly commits: Commits;
  readonly checkpoints: Checkpoints;
  readonly steps: Steps;
  /** Shows what the agent does to whoever looks. */
  readonly progress: AgentProgress;
  readonly calls: PeerCalls;
  readonly carried: PendingReceipts;
  readonly peers: WorkerPeers;
  readonly store: WorkerStore;
  readonly events: WorkerEvents;
  /** Says that another agent may have become runnable. */
  readonly onRunnable: () => void;
  /** Longest one model call may take, all attempts together, ms. */
  readonly modelTimeoutMs: number;
}
