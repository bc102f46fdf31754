import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Handler } from '@writ/rpc';
import { recordReported } from '../../app/review/report-receipts.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * ReportReceipts: records receipts that the gateway delivers directly. Acknowledges a receipt if it was recorded, if it
 * matches no approved call and was therefore only audited, or if it is invalid and its token has an id (TG-8); the
 * gateway sends all other receipts again. Each refused attempt is audited once (TG-1, SV-8).
 */
export function reportReceipts(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.reportReceipts> {
  return async ({ receipts, refusals }, call) => {
    const reported = await recordReported(context, receipts, refusals);
    for (const id of reported.invalidIds) call.log.warn({ receipt_id: id }, 'receipt rejected');
    return {
      acknowledgedReceiptIds: reported.acknowledgedIds,
      acknowledgedRefusalIds: refusals.map(({ refusalId }) => refusalId),
    };
  };
}
