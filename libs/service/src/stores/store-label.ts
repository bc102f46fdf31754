import type { StoreLocation } from '@writ/store';

const SCHEMA = 'schema ';

/** Returns the name of a database in logs, error messages and its marker: the SQLite file or the PostgreSQL schema. */
export function storeLabel(location: StoreLocation): string {
  return location.dialect === 'sqlite' ? location.file : `${SCHEMA}${location.schema}`;
}

/** Whether a label from {@link storeLabel} is that of a PostgreSQL schema, whose name contains no dot. */
export function isPostgresLabel(label: string): boolean {
  return label.startsWith(SCHEMA) && !label.endsWith('.db');
}
