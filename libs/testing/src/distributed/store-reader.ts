import type { ServiceName } from '@writ/identity';
import pg from 'pg';

/** A row as `pg` returns it: bigint and numeric values are strings. */
export type Row = Readonly<Record<string, unknown>>;

/** Queries the stores of all services in one PostgreSQL. */
export class StoreReader {
  readonly #url: () => string;
  readonly #ca: string | undefined;

  /** @param ca CA certificate of a server with TLS, in PEM */
  constructor(url: () => string, ca?: string) {
    this.#url = url;
    this.#ca = ca;
  }

  /** Runs a query in the schema of a service. */
  async rows(service: ServiceName, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const client = new pg.Client({
      connectionString: this.#url(),
      ...(this.#ca !== undefined && { ssl: { ca: this.#ca } }),
    });
    await client.connect();
    try {
      await client.query(`set search_path to ${service.replaceAll('-', '_')}`);
      return (await client.query<Row>(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  }
}
