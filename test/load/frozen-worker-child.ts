// Forked, frozen and thawed by frozen-worker.ts: one of two workers on one store.
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

/** What it is started with, as JSON in its first argument. */
export interface WorkerSettings {
  readonly config: AgentWorkerConfig;
  readonly addresses: Readonly<Record<ServiceName, string>>;
}

/** What it is told. */
export type WorkerOrder =
  /** Freeze right before the so-manieth transaction from now on; 0 = not at all. */
  { readonly kind: 'freeze'; readonly before: number } | { readonly kind: 'stop' };

/** What it tells. */
export type WorkerNews =
  | { readonly kind: 'up'; readonly address: string }
  | { readonly kind: 'freezing' }
  /** What became of the transaction before which it froze. */
  | { readonly kind: 'thawed'; readonly refused: string }
  /** Transactions since the last order. */
  | { readonly kind: 'count'; readonly transactions: number };

let freezeBefore = 0;
let transactions = 0;

const told = (news: WorkerNews): Promise<void> =>
  new Promise((done) => process.send?.(news, () => done()));

/** The store, with a process that stands still at the worst moment: when everything was checked but the write. */
async function open(location: AgentWorkerConfig['store']): Promise<WorkerStore> {
  const store = await openWorkerStore(location);
  const transaction: WorkerStore['transaction'] = async (work, options) => {
    if (options?.background === true) return await store.transaction(work, options);
    transactions += 1;
    if (transactions !== freezeBefore) return await store.transaction(work, options);
    freezeBefore = 0;
    await told({ kind: 'freezing' });
    process.kill(process.pid, 'SIGSTOP');
    try {
      const result = await store.transaction(work, options);
      await told({ kind: 'thawed', refused: '' });
      return result;
    } catch (error) {
      await told({ kind: 'thawed', refused: isWritError(error) ? error.reason : String(error) });
      throw error;
    }
  };
  return {
    dialect: store.dialect,
    db: store.db,
    get commits() {
      return store.commits;
    },
    get backgroundCommits() {
      return store.backgroundCommits;
    },
    transaction,
    close: () => store.close(),
  };
}

const { config, addresses } = JSON.parse(process.argv[2] ?? '') as WorkerSettings;
const worker = await createAgentWorker(config, {
  telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
  // Its events stay where they are written, to be counted.
  bus: createInProcessBus({ requiredConsumers: ['nobody'], onError: () => undefined }),
  addressOf: (service) => addresses[service],
  openStore: open,
});
process.on('message', async (order: WorkerOrder) => {
  if (order.kind === 'freeze') {
    await told({ kind: 'count', transactions });
    transactions = 0;
    freezeBefore = order.before;
    return;
  }
  await worker.stop();
  process.disconnect();
});
await worker.start();
await told({ kind: 'up', address: worker.address });
