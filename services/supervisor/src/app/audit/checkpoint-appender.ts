import type { Telemetry } from '@writ/telemetry';
import { type CheckpointRow, checkpointsAfter } from '../../store/audit/checkpoints.ts';
import { chainEnds } from '../../store/audit/read-chain.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';
import type { ChainGuard } from './chain-guard.ts';
import type { CheckpointFile } from './checkpoint-file.ts';

/** Maximum number of checkpoints that are read and appended at once. */
const BATCH = 500;

/** Dependencies of a {@link CheckpointAppender}. */
interface AppenderParts {
  readonly store: Pick<SupervisorStore, 'db'>;
  readonly telemetry: Pick<Telemetry, 'log'>;
  readonly chainGuard: Pick<ChainGuard, 'isRolledBack'>;
  readonly checkpointFile: CheckpointFile;
}

/**
 * Appends every stored checkpoint to the checkpoint file, including those of other replicas and from before a crash
 * (SV-8). A failure is logged, and the missing checkpoints are appended with the next checkpoint of any tenant.
 */
export class CheckpointAppender {
  readonly #parts: AppenderParts;
  /** Tenants with stored checkpoints that may be missing in the file. */
  readonly #lacking = new Set<string>();
  #isCompared = false;

  constructor(parts: AppenderParts) {
    this.#parts = parts;
  }

  /**
   * On the first call, appends the stored checkpoints that are missing in the file, except for tenants whose chain was
   * rolled back; later calls do nothing.
   */
  async complete(): Promise<void> {
    if (this.#isCompared) return;
    const { store, chainGuard, checkpointFile } = this.#parts;
    for (const { tenant, signed_count } of await chainEnds(store.db)) {
      const isLacking = signed_count > checkpointFile.lastCount(tenant);
      if (isLacking && !chainGuard.isRolledBack(tenant)) this.#lacking.add(tenant);
    }
    this.#isCompared = true;
    await this.#appendLacking();
  }

  /** Appends the checkpoint of a tenant that was just saved. */
  async append(tenant: string): Promise<void> {
    this.#lacking.add(tenant);
    await this.#appendLacking();
  }

  async #appendLacking(): Promise<void> {
    const { store, telemetry, checkpointFile } = this.#parts;
    try {
      for (const tenant of this.#lacking) {
        let rows: readonly CheckpointRow[];
        do {
          const after = checkpointFile.lastCount(tenant);
          rows = await checkpointsAfter(store.db, tenant, after, BATCH);
          await checkpointFile.append(tenant, rows);
        } while (rows.length === BATCH);
        this.#lacking.delete(tenant);
      }
    } catch (error) {
      telemetry.log.error(
        { err: error },
        'failed to write the audit checkpoint file; retrying with the next checkpoint',
      );
    }
  }
}
