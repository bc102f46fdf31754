import { column, table } from '@writ/store';

/** One row for each audit record; the last three columns are null until it is linked (SV-8). */
export const audit = table('audit', {
  columns: {
    /** Insertion order; the number in the chain is `sequence`. */
    position: column.position(),
    tenant: column.text(),
    recorded_at: column.timestamp(),
    kind: column.text(),
    /** Empty when there is none. */
    run_id: column.text(),
    instance: column.text(),
    call_id: column.text(),
    canonical_json: column.text(),
    sequence: column.integer().nullable(),
    previous_hash: column.text().nullable(),
    hash: column.text().nullable(),
  },
  unique: { audit_chain: ['tenant', 'sequence'] },
  indexes: {
    audit_unlinked: { on: ['position'], where: ['sequence', 'is', null] },
    audit_by_run: { on: ['tenant', 'run_id', 'sequence'] },
  },
});

/** One row for each tenant: the linked and the signed part of its chain (SV-8). */
export const auditChains = table('audit_chains', {
  columns: {
    tenant: column.text(),
    /** Sequence and hash of the last linked record. */
    sequence: column.integer(),
    hash: column.text(),
    /** The count of the last checkpoint; zero before the first. */
    signed_count: column.integer(),
    /** Number of checkpoints. */
    checkpoints: column.integer(),
    /** Time of the last checkpoint; before the first, the start of the chain. */
    signed_at: column.timestamp(),
  },
  primaryKey: ['tenant'],
});

/** One row for each signed checkpoint of a chain (SV-8). */
export const auditCheckpoints = table('audit_checkpoints', {
  columns: {
    tenant: column.text(),
    count: column.integer(),
    /** The JWS. */
    signed: column.text(),
    signed_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'count'],
});

/** One row for each lease. */
export const leases = table('leases', {
  columns: {
    name: column.text(),
    /** The replica that holds it. */
    holder: column.text(),
    expires_at: column.timestamp(),
  },
  primaryKey: ['name'],
});
