import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** A refund that went out. Amounts are whole cents. */
export interface Refund {
  readonly idempotency_key: string;
  readonly user_id: number;
  readonly amount_cents: number;
  readonly currency: string;
  readonly reason: string;
  readonly transaction_id: string;
  readonly run_id: string;
  readonly issued_at: string;
}

/** An email that waits to be sent; nobody sends it here. Amounts are whole cents. */
export interface Email {
  readonly idempotency_key: string;
  readonly user_id: number;
  readonly recipient: string;
  readonly template: string;
  readonly amount_cents: number;
  readonly message: string;
  readonly email_id: string;
  readonly run_id: string;
  readonly written_at: string;
}

/** Everything that the desk has done. */
export interface LedgerRows {
  readonly refunds: readonly Refund[];
  readonly emails: readonly Email[];
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS refunds (
    idempotency_key TEXT PRIMARY KEY, user_id INTEGER NOT NULL, amount_cents INTEGER NOT NULL,
    currency TEXT NOT NULL, reason TEXT NOT NULL, transaction_id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL, issued_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS emails (
    idempotency_key TEXT PRIMARY KEY, user_id INTEGER NOT NULL, recipient TEXT NOT NULL,
    template TEXT NOT NULL, amount_cents INTEGER NOT NULL, message TEXT NOT NULL,
    email_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, written_at TEXT NOT NULL
  ) STRICT;
`;

/**
 * The desk's own books: one row for each refund and each email, durable before the tool answers. A
 * key that is there already keeps its row, so that a repeat moves no money (TG-5).
 */
export class RefundLedger {
  readonly #database: DatabaseSync;

  /** Opens the books in `dataDir`, and makes them on the first start. */
  constructor(dataDir: string) {
    mkdirSync(dataDir, { recursive: true });
    this.#database = new DatabaseSync(fileIn(dataDir), { timeout: 5_000 });
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    this.#database.exec(TABLES);
  }

  /** Books a refund, once a key. @returns the row that stands */
  refund(refund: Refund): Refund {
    return this.#book('refunds', refund) as unknown as Refund;
  }

  /** Books an email, once a key. @returns the row that stands */
  email(email: Email): Email {
    return this.#book('emails', email) as unknown as Email;
  }

  close(): void {
    this.#database.close();
  }

  #book(table: 'refunds' | 'emails', row: Refund | Email): Record<string, unknown> {
    const columns = Object.keys(row);
    const places = columns.map(() => '?').join(', ');
    this.#database
      .prepare(
        `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})
         ON CONFLICT (idempotency_key) DO NOTHING`,
      )
      .run(...Object.values(row));
    const standing = this.#database
      .prepare(`SELECT * FROM ${table} WHERE idempotency_key = ?`)
      .get(row.idempotency_key);
    if (standing === undefined) throw new Error(`A row of ${table} is gone.`);
    return standing;
  }
}

/** Every row of the books in `dataDir`, the oldest first; for tests and the curious. */
export function readLedger(dataDir: string): LedgerRows {
  const database = new DatabaseSync(fileIn(dataDir), { readOnly: true, timeout: 5_000 });
  try {
    const rows = (table: string) =>
      database
        .prepare(`SELECT * FROM ${table} ORDER BY rowid`)
        .all()
        .map((row) => ({ ...row }));
    return {
      refunds: rows('refunds') as unknown as Refund[],
      emails: rows('emails') as unknown as Email[],
    };
  } finally {
    database.close();
  }
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'refund-ledger.db');
}
