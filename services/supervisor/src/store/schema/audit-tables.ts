/** One row for each lease. */
export interface LeasesTable {
  name: string;
  /** The replica that holds it. */
  holder: string;
  expires_at: Date;
}

/** One row for each tenant: the linked and the signed part of its chain (SV-8). */
export interface AuditChainsTable {
  tenant: string;
  /** Of the last linked record. */
  sequence: number;
  hash: string;
  /** The count of the last checkpoint; zero before the first. */
  signed_count: number;
  /** Time of the last checkpoint; before the first, the start of the chain. */
  signed_at: Date;
}

/** One row for each signed checkpoint of a chain (SV-8). */
export interface AuditCheckpointsTable {
  tenant: string;
  count: number;
  /** The JWS. */
  signed: string;
  signed_at: Date;
}

/** One row for each audited refusal, so that it is audited once (TG-1). */
export interface RefusalsTable {
  tenant: string;
  refusal_id: string;
  recorded_at: Date;
}
