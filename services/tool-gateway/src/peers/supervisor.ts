import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { createRpcClient } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';

/** What the gateway asks of the supervisor. */
export interface Supervisor {
  /**
   * Delivers receipts, the oldest first (TG-8).
   * @returns ids of those that it has recorded, or refused for ever
   */
  reportReceipts(tokens: readonly string[]): Promise<readonly string[]>;
  close(): void;
}

/** What {@link connectSupervisor} needs. */
export interface SupervisorOptions {
  readonly address: () => string;
  readonly serviceToken: () => Promise<string>;
  readonly telemetry: Telemetry;
}

/** The supervisor, over gRPC; connected at the first call. */
export function connectSupervisor(options: SupervisorOptions): Supervisor {
  const client = createRpcClient(SupervisionService, options);
  return {
    async reportReceipts(tokens) {
      const { acknowledgedReceiptIds } = await client.reportReceipts({ receipts: [...tokens] });
      return acknowledgedReceiptIds;
    },
    close: () => client.close(),
  };
}
