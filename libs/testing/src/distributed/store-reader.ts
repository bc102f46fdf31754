import type { ServiceName } from '@writ/identity';
import pg from 'pg';

/** A row as PostgreSQL gives it: 64-bit numbers and money as strings. */
export type Row = Readonly<Record<string, unknown>>;

/** Reads the stores of services in one PostgreSQL, as no service can. */
export class StoreReader {
  readonly #url: () => string;
  readonly #ca: string | undefined;

  /** @param ca the authority of a server that wants TLS, in PEM */
  constructor(url: () => string, ca?: string) {
    this.#url = url;
    this.#ca = ca;
  }

  /** What a query finds in the schema of a service. */
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
