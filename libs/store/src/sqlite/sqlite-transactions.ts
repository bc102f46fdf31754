import { type Dialect, type Driver, Kysely, Transaction } from 'kysely';
import { connectDirectly, enableRowCache } from '../query/transaction-state.ts';
import type { GroupCommit } from './group-commit.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { sqliteDialect, TransactionConnection, transactionDriver } from './sqlite-dialect.ts';
import type { TurnKind } from './turn.ts';

/**
 * Runs transactions in turns of `group`, like Kysely's `transaction().execute()` but with fewer layers of promises.
 */
export class SqliteTransactions<DB> {
  readonly #connection: SqliteConnection;
  readonly #group: GroupCommit;
  readonly #kind: Exclude<TurnKind, 'read'>;
  readonly #driver: Driver;
  readonly #dialect: Dialect;
  readonly #parent: Kysely<DB>;

  constructor(connection: SqliteConnection, group: GroupCommit, kind: Exclude<TurnKind, 'read'>) {
    this.#connection = connection;
    this.#group = group;
    this.#kind = kind;
    this.#driver = transactionDriver(connection, group, kind);
    this.#dialect = sqliteDialect(this.#driver);
    this.#parent = new Kysely({ dialect: this.#dialect });
  }

  /**
   * Runs `work` in a transaction, which is rolled back if `work` throws; resolves after the shared commit, which is
   * durable unless all transactions of the batch are `relaxed`.
   * @param commitDelayMs longest wait for another transaction with which to share the commit, ms
   * @throws OverloadedError STORE_QUEUE_FULL; UnavailableError STORE_BUSY, STORE_COMMIT_FAILED
   */
  async run<T>(work: (trx: Transaction<DB>) => Promise<T>, commitDelayMs = 0): Promise<T> {
    const turn = await this.#group.enter(this.#kind, commitDelayMs);
    try {
      turn.begin();
      const result = await work(this.#open(new TransactionConnection(this.#connection, turn)));
      await turn.finish();
      return result;
    } finally {
      turn.leave();
    }
  }

  #open(connection: TransactionConnection): Transaction<DB> {
    const dialect = this.#dialect;
    const executor = this.#parent.getExecutor().withConnectionProvider({
      // Queries are synchronous, so they need not wait for each other.
      provideConnection: async (consumer) => consumer(connection),
    });
    const trx = new Transaction<DB>({
      config: { dialect },
      driver: this.#driver,
      dialect,
      executor,
    });
    connectDirectly(trx, (sql, parameters) => connection.run(sql, parameters));
    enableRowCache(trx, this.#connection.cacheGeneration, () => connection.turn.state === 'open');
    return trx;
  }
}
