/** The state of a halt: ordered, enforced in all services, being lifted, lifted (SV-9). */
export type StoredHaltState = 'pending' | 'in_force' | 'lifting' | 'lifted';

/** One row for each halt; it is in force until `lifted_at`. */
export interface HaltsTable {
  halt_id: string;
  /** `*`, a tenant, `tenant/run` or `tenant/run/agent`. */
  scope: string;
  /** The parts of the scope; null where it is wider. */
  tenant: string | null;
  run_id: string | null;
  instance: string | null;
  reason: string;
  end_runs: boolean;
  ordered_by: string;
  /** The tenant of the person who ordered it. */
  ordered_for: string;
  ordered_at: Date;
  state: StoredHaltState;
  /** Time of the last confirmation by the meter, and by the gateway; null before. */
  meter_at: Date | null;
  gateway_at: Date | null;
  /** JSON: calls in flight at the confirmation. */
  meter_in_flight: string;
  gateway_in_flight: string;
  resumed_by: string | null;
  lifted_at: Date | null;
}
