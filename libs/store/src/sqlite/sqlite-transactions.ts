import { type Dialect, type Driver, Kysely, Transaction } from 'kysely';
import { connectDirectly } from '../query/direct-connection.ts';
import { lendMemory } from '../query/row-cache.ts';
import type { GroupCommit } from './group-commit.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { sqliteDialect, TransactionConnection, transactionDriver } from './sqlite-dialect.ts';
import type { TurnKind } from './turn.ts';

/**
 * Transactions that take turns in `group`: what Kysely's `transaction().execute()` does, without its
 * layers of promises around every one of them.
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
   * Runs `work` in a transaction of its own; resolves when it is durable. What throws is undone.
   * @throws OverloadedError STORE_QUEUE_FULL; UnavailableError STORE_BUSY, STORE_COMMIT_FAILED
   */
  async run<T>(work: (trx: Transaction<DB>) => Promise<T>): Promise<T> {
    const turn = await this.#group.enter(this.#kind);
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
      // Its queries are over when they return, so they need not wait for each other.
      provideConnection: async (consumer) => consumer(connection),
    });
    const trx = new Transaction<DB>({
      config: { dialect },
      driver: this.#driver,
      dialect,
      executor,
    });
    connectDirectly(trx, (sql, parameters) => connection.run(sql, parameters));
    lendMemory(trx, this.#connection.memory, () => connection.turn.state === 'open');
    return trx;
  }
}
