import { InternalError } from '@writ/kernel';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  Transaction,
} from 'kysely';
import { streamingRefused } from '../connection-refusals.ts';
import { connectDirectly } from '../query/transaction-state.ts';
import { postgresDialect } from './postgres-dialect.ts';
import type { PostgresGroupCommit } from './postgres-group-commit.ts';
import type { PostgresTurn } from './postgres-turn.ts';

/** Provides Kysely transactions that run in turns of a {@link PostgresGroupCommit}. */
export class PostgresTransactions<DB> {
  /** The Kysely instance of the writer; `parent.transaction().execute()` runs in a background turn. */
  readonly parent: Kysely<DB>;
  readonly #driver: Driver;
  readonly #dialect: Dialect;

  constructor(writer: PostgresGroupCommit, schema: string) {
    this.#driver = turnDriver(writer);
    this.#dialect = postgresDialect(this.#driver, schema);
    this.parent = new Kysely({ dialect: this.#dialect });
  }

  /** The transaction that runs in `turn`. */
  of(turn: PostgresTurn): Transaction<DB> {
    const connection = new TurnConnection(turn);
    const dialect = this.#dialect;
    const executor = this.parent.getExecutor().withConnectionProvider({
      // The session executes queries in order, so they do not need to wait for each other here.
      provideConnection: async (consumer) => consumer(connection),
    });
    const trx = new Transaction<DB>({
      config: { dialect },
      driver: this.#driver,
      dialect,
      executor,
    });
    connectDirectly(
      trx,
      (sql, parameters) => turn.run(sql, parameters),
      (sql, parameters) => turn.send(sql, parameters),
    );
    return trx;
  }
}

class TurnConnection implements DatabaseConnection {
  readonly turn: PostgresTurn;

  constructor(turn: PostgresTurn) {
    this.turn = turn;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return await this.turn.run<R>(sql, parameters);
  }

  streamQuery(): never {
    throw streamingRefused();
  }
}

function turnDriver(writer: PostgresGroupCommit): Driver {
  return {
    init: done,
    acquireConnection: async () => new TurnConnection(await writer.enter({ background: true })),
    // The transaction is already open when a turn begins.
    beginTransaction: done,
    commitTransaction: async (held) => await turnOf(held).finish(),
    rollbackTransaction: async (held) => turnOf(held).leave(),
    releaseConnection: async (held) => turnOf(held).leave(),
    destroy: done,
  };
}

function turnOf(connection: DatabaseConnection): PostgresTurn {
  if (connection instanceof TurnConnection) return connection.turn;
  throw new InternalError('STORE_WRONG_CONNECTION', 'A connection was returned to another driver.');
}

async function done(): Promise<void> {
  // The store opens and closes the sessions.
}
