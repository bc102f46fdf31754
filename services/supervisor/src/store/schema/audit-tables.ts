/** One row for each thing that only one replica does at a time. */
export interface LeasesTable {
  name: string;
  /** The replica that does it. */
  holder: string;
  expires_at: Date;
}

/** One row for each tenant: how far its chain is linked, and how much of it is signed (SV-8). */
export interface AuditChainsTable {
  tenant: string;
  /** Of the last record that is linked. */
  sequence: number;
  hash: string;
  /** What the last checkpoint covers; zero before the first. */
  signed_count: number;
  /** When the last checkpoint was signed; before the first, when the chain began. */
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

/** One row for each refused attempt that is on record, so that it is there once (TG-1). */
export interface RefusalsTable {
  tenant: string;
  refusal_id: string;
  recorded_at: Date;
}
