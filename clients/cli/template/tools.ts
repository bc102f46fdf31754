import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ToolContext, ToolFailure, type Tools } from '@writ/sdk';

const ORDERS = new Map([
  [7, { order: 7, total_usd: 120, delivered_days_late: 6 }],
  [8, { order: 8, total_usd: 35, delivered_days_late: 0 }],
]);

/** The functions of tools.yaml. Their arguments have been checked, and are exactly those that were approved. */
export async function createTools({ dataDir }: ToolContext): Promise<Tools> {
  const file = join(dataDir, 'vouchers.jsonl');
  return {
    get_order: async ({ order }) => {
      const found = ORDERS.get(Number(order));
      // The model reads the message of a ToolFailure; that of any other error is hidden.
      if (found === undefined) throw new ToolFailure(`Order ${String(order)} does not exist.`);
      return found;
    },
    issue_voucher: async ({ order, amount_usd }, { idempotencyKey }) => {
      const voucher = { id: idempotencyKey, order: order ?? null, amount_usd: amount_usd ?? null };
      const issued = existsSync(file) ? readFileSync(file, 'utf8') : '';
      if (!issued.includes(JSON.stringify(voucher))) {
        appendFileSync(file, `${JSON.stringify(voucher)}\n`, { flush: true });
      }
      return { status: 'ok', ...voucher };
    },
  };
}
