import { column, table } from '@writ/store';

/** The state of a halt: ordered, enforced in all services, being lifted, lifted (SV-9). */
type StoredHaltState = 'pending' | 'in_force' | 'lifting' | 'lifted';

/** One row for each halt; it is in force until `lifted_at`. */
export const halts = table('halts', {
  columns: {
    halt_id: column.text(),
    /** `*`, a tenant, `tenant/run` or `tenant/run/agent`. */
    scope: column.text(),
    /** Tenant, run and agent of the scope; null for a part that the scope does not restrict. */
    tenant: column.text().nullable(),
    run_id: column.text().nullable(),
    instance: column.text().nullable(),
    reason: column.text(),
    end_runs: column.boolean(),
    ordered_by: column.text(),
    /** The tenant of the person who ordered it. */
    ordered_for: column.text(),
    ordered_at: column.timestamp(),
    state: column.text<StoredHaltState>(),
    /** Time of the last confirmation by the meter, and by the gateway; null before. */
    meter_at: column.timestamp().nullable(),
    gateway_at: column.timestamp().nullable(),
    /** JSON: calls in flight at the confirmation. */
    meter_in_flight: column.text(),
    gateway_in_flight: column.text(),
    resumed_by: column.text().nullable(),
    lifted_at: column.timestamp().nullable(),
  },
  primaryKey: ['halt_id'],
  indexes: {
    halts_in_force: { on: ['scope'], where: ['lifted_at', 'is', null] },
    halts_by_time: { on: ['ordered_at', 'halt_id'] },
  },
});
