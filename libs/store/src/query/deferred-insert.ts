import type { Kysely, Transaction } from 'kysely';
import { type PreparedWrite, prepareWrite } from './prepared-query.ts';
import { beforeCommit, TransactionValue } from './transaction-state.ts';

/** Maximum number of rows in one statement. */
const MAX_ROWS = 32;

/** Options of {@link DeferredInsert}. */
interface Options<DB, Row> {
  readonly table: keyof DB & string;
  readonly columns: readonly (keyof Row & string)[];
  /** Unique column; a row is skipped if the table already contains a row with the same value. */
  readonly unlessExists?: keyof Row & string;
}

/** The cells of the rows, row by row. */
type Cells = readonly unknown[];

/**
 * Collects rows for one table and inserts them at the end of the transaction, many rows per statement. Intended for
 * rows that the transaction itself does not read, such as events (CO-1). The rows are committed or rolled back with the
 * transaction.
 */
export class DeferredInsert<DB, Row extends object> {
  readonly #options: Options<DB, Row>;
  readonly #queries = new Map<number, PreparedWrite<DB, Cells>>();
  readonly #rows = new TransactionValue<Row[]>(() => []);

  constructor(options: Options<DB, Row>) {
    this.#options = options;
  }

  /** Adds a row; `trx` inserts the added rows at its end, in the order in which they were added. */
  add(trx: Transaction<DB>, row: Row): void {
    this.#rows.of(trx).push(row);
    beforeCommit(trx, this, () => this.#flush(trx));
  }

  async #flush(trx: Transaction<DB>): Promise<void> {
    const rows = this.#rows.of(trx).splice(0);
    for (let from = 0; from < rows.length; from += MAX_ROWS) {
      const chunk = rows.slice(from, from + MAX_ROWS);
      await this.#query(chunk.length)(trx, this.#cells(chunk));
    }
  }

  #cells(rows: readonly Row[]): Cells {
    const cells: unknown[] = [];
    for (const row of rows) for (const name of this.#options.columns) cells.push(row[name]);
    return cells;
  }

  /** Returns the prepared insert for `count` rows; one statement is prepared per number of rows. */
  #query(count: number): PreparedWrite<DB, Cells> {
    const known = this.#queries.get(count);
    if (known !== undefined) return known;
    const { table, columns, unlessExists } = this.#options;
    const query = prepareWrite<DB, Cells>((db, cells) => {
      const rows = Array.from({ length: count }, (_, row) =>
        Object.fromEntries(
          columns.map((name, column) => [name, cells[row * columns.length + column]]),
        ),
      );
      const insert = (db as unknown as Kysely<Record<string, Record<string, unknown>>>)
        .insertInto(table)
        .values(rows);
      return unlessExists === undefined
        ? insert
        : insert.onConflict((conflict) => conflict.column(unlessExists as never).doNothing());
    });
    this.#queries.set(count, query);
    return query;
  }
}
