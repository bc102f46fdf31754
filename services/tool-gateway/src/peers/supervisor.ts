import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type RefusedAttemptSchema,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Clock } from '@writ/kernel';
import { type ChannelTls, createRpcClient, type Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { presentedBy, type Refusal } from '../store/refusals.ts';

/** Client of the supervisor. Receipts and refused attempts have separate calls, so that neither can block the other. */
export interface Supervisor {
  /**
   * Delivers receipts, the oldest first (TG-8).
   * @returns ids of the receipts that the supervisor has recorded or permanently rejected
   */
  reportReceipts(tokens: readonly string[]): Promise<readonly string[]>;
  /**
   * Delivers refused attempts, the oldest first (TG-1).
   * @returns ids of the attempts that the supervisor has recorded
   */
  reportRefusals(refusals: readonly Refusal[]): Promise<readonly string[]>;
  close(): void;
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
    async reportReceipts(tokens) {
      const answer = await client.reportReceipts({ receipts: [...tokens] });
      return answer.acknowledgedReceiptIds;
    },
    async reportRefusals(refusals) {
      const answer = await client.reportReceipts({ refusals: refusals.map(toAttempt) });
      return answer.acknowledgedRefusalIds;
    },
    close: () => client.close(),
  };
}

function toAttempt(refusal: Refusal): MessageInitShape<typeof RefusedAttemptSchema> {
  return {
    refusalId: refusal.refusal_id,
    tenant: refusal.tenant,
    runId: refusal.run_id,
    agentInstance: refusal.agent_instance,
    callId: refusal.call_id,
    reason: refusal.reason,
    field: refusal.field,
    writSha256: refusal.writ_sha256,
    // A row of an earlier version may contain any text.
    presentedBy: presentedBy(refusal.presented_by),
    refuseTime: timestampFromDate(refusal.refused_at),
  };
}
