import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Clock } from '@writ/kernel';
import { type ChannelTls, createRpcClient, type Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import type { Refusal } from '../store/refusals.ts';

/** Client of the supervisor. */
export interface Supervisor {
  /**
   * Delivers receipts and refused attempts, the oldest first (TG-1, TG-8).
   * @returns ids that the supervisor has recorded or permanently rejected
   */
  report(receipts: readonly string[], refusals: readonly Refusal[]): Promise<Acknowledged>;
  close(): void;
}

/** Acknowledged ids of a delivery. */
export interface Acknowledged {
  readonly receiptIds: readonly string[];
  readonly refusalIds: readonly string[];
}

/** Options of {@link connectSupervisor}. */
export interface SupervisorOptions {
  readonly address: () => string;
  readonly serviceToken: () => Promise<string>;
  readonly telemetry: Telemetry;
  readonly tls?: ChannelTls | undefined;
  readonly loopback?: Loopback | undefined;
  readonly clock: Clock;
  /** Receives the clock of the supervisor, ms since 1970. */
  readonly onPeerTime: (timeMs: number) => void;
}

/** Creates a gRPC client of the supervisor, which connects on the first call. */
export function connectSupervisor(options: SupervisorOptions): Supervisor {
  const client = createRpcClient(SupervisionService, options);
  return {
    async report(receipts, refusals) {
      const answer = await client.reportReceipts({
        receipts: [...receipts],
        refusals: refusals.map((refusal) => ({
          refusalId: refusal.refusal_id,
          tenant: refusal.tenant,
          runId: refusal.run_id,
          agentInstance: refusal.agent_instance,
          callId: refusal.call_id,
          reason: refusal.reason,
          field: refusal.field,
          writSha256: refusal.writ_sha256,
          presentedBy: refusal.presented_by,
          refuseTime: timestampFromDate(refusal.refused_at),
        })),
      });
      return {
        receiptIds: answer.acknowledgedReceiptIds,
        refusalIds: answer.acknowledgedRefusalIds,
      };
    },
    close: () => client.close(),
  };
}
