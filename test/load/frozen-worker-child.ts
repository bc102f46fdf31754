// Started, frozen and thawed by frozen-worker.ts: one of two workers on one store.
import {
  type AgentWorkerConfig,
  createAgentWorker,
  openWorkerStore,
  type WorkerStore,
} from '@writ/agent-worker';
import { createInProcessBus } from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import { isWritError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';

/** The first argument of the process, as JSON. */
export interface WorkerSettings {
  readonly config: AgentWorkerConfig;
  readonly addresses: Readonly<Record<ServiceName, string>>;
}

/** Messages to this process. */
export type WorkerCommand =
  /** Freeze before the n-th transaction of a run from now on; 0 = do not freeze. */
  { readonly kind: 'freeze'; readonly before: number } | { readonly kind: 'stop' };

/** Messages of this process. */
export type WorkerMessage =
  | { readonly kind: 'started'; readonly address: string }
  | { readonly kind: 'freezing' }
  /** `refused` is the error of the transaction that followed the freeze; empty when the transaction committed. */
  | { readonly kind: 'thawed'; readonly refused: string }
  /** Transactions of runs since the last command. */
  | { readonly kind: 'count'; readonly transactions: number };

let freezeBefore = 0;
let transactions = 0;

const send = (message: WorkerMessage): Promise<void> =>
  new Promise((done) => process.send?.(message, () => done()));

/** A store that stops the process at the worst moment: after all checks and before the write. */
async function open(location: AgentWorkerConfig['store']): Promise<WorkerStore> {
  const store = await openWorkerStore(location);
  const transaction: WorkerStore['transaction'] = async (work, options) => {
    // Only a transaction of a single run writes under a lease; orders of the supervisor and claims name a tenant or
    // several runs.
    if (options?.run === undefined) return await store.transaction(work, options);
    transactions += 1;
    if (transactions !== freezeBefore) return await store.transaction(work, options);
    freezeBefore = 0;
    await send({ kind: 'freezing' });
    process.kill(process.pid, 'SIGSTOP');
    try {
      const result = await store.transaction(work, options);
      await send({ kind: 'thawed', refused: '' });
      return result;
    } catch (error) {
      await send({ kind: 'thawed', refused: isWritError(error) ? error.reason : String(error) });
      throw error;
    }
  };
  return {
    dialect: store.dialect,
    db: store.db,
    urgentDb: store.urgentDb,
    get commits() {
      return store.commits;
    },
    get backgroundCommits() {
      return store.backgroundCommits;
    },
    checkAvailable: () => store.checkAvailable(),
    transaction,
    close: () => store.close(),
  };
}

const { config, addresses } = JSON.parse(process.argv[2] ?? '') as WorkerSettings;
const worker = await createAgentWorker(config, {
  telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
  // Events stay in the outbox, so that the test can count them.
  bus: createInProcessBus({ requiredConsumers: ['no-consumer'], onError: () => undefined }),
  addressOf: (service) => addresses[service],
  openStore: open,
});
process.on('message', async (command: WorkerCommand) => {
  if (command.kind === 'freeze') {
    await send({ kind: 'count', transactions });
    transactions = 0;
    freezeBefore = command.before;
    return;
  }
  await worker.stop();
  process.disconnect();
});
await worker.start();
await send({ kind: 'started', address: worker.address });
