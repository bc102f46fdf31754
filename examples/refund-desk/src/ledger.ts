import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** A paid refund. Amounts are whole cents. */
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

/** A queued email; the example does not send it. Amounts are whole cents. */
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

/** All refunds and emails. */
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
 * The ledger: one row for each refund and each email, durable before the tool returns. Writing an existing key again
 * does not change its row, so that a repeated call does not pay twice (TG-5).
 */
export class RefundLedger {
  readonly #database: DatabaseSync;

  /** Opens the ledger in `dataDir` and creates it on the first start. */
  constructor(dataDir: string) {
    mkdirSync(dataDir, { recursive: true });
    this.#database = new DatabaseSync(fileIn(dataDir), { timeout: 5_000 });
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    this.#database.exec(TABLES);
  }

  /** Records a refund, once per key. @returns the recorded row */
  refund(refund: Refund): Refund {
    return this.#book('refunds', refund) as unknown as Refund;
  }

  /** Records an email, once per key. @returns the recorded row */
  email(email: Email): Email {
    return this.#book('emails', email) as unknown as Email;
  }

  close(): void {
    this.#database.close();
  }

  #book(table: 'refunds' | 'emails', row: Refund | Email): Record<string, unknown> {
    const columns = Object.keys(row);
    const placeholders = columns.map(() => '?').join(', ');
    this.#database
      .prepare(
        `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders})
         ON CONFLICT (idempotency_key) DO NOTHING`,
      )
      .run(...Object.values(row));
    const recorded = this.#database
      .prepare(`SELECT * FROM ${table} WHERE idempotency_key = ?`)
      .get(row.idempotency_key);
    if (recorded === undefined) throw new Error(`A row of ${table} is missing.`);
    return recorded;
  }
}

/** Every row of the ledger in `dataDir`, the oldest first; for tests. */
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
