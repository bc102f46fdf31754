import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type {
  AuditRecordSchema,
  CheckpointSchema,
} from '@writ/contracts/writ/audit/v1/audit_service_pb';
import type { CheckpointRow } from '../store/audit/checkpoints.ts';
import type { LinkedRecord } from '../store/audit/read-chain.ts';

/** Converts an audit record. */
export function auditRecordMessage(row: LinkedRecord): MessageInitShape<typeof AuditRecordSchema> {
  return {
    sequence: BigInt(row.sequence),
    tenant: row.tenant,
    recordTime: timestampFromDate(row.recorded_at),
    kind: row.kind,
    runId: row.run_id,
    agentInstance: row.instance,
    callId: row.call_id,
    canonicalJson: row.canonical_json,
    previousHash: row.previous_hash,
    hash: row.hash,
  };
}

/** Converts a checkpoint, or the head of an export. */
export function checkpointMessage({
  count,
  signed,
  signed_at,
}: Omit<CheckpointRow, 'tenant'>): MessageInitShape<typeof CheckpointSchema> {
  return { count: BigInt(count), signed, signTime: timestampFromDate(signed_at) };
}
