import { type ToolContext, ToolFailure, type Tools } from '@writ/kernel';
import { sendReport } from './reports.ts';

const ORDERS: Readonly<Record<string, readonly number[]>> = { '2026-11-20': [120, 640, 75, 340] };

/** The shop's tools. */
export async function createTools({ dataDir }: ToolContext): Promise<Tools> {
  return {
    read_figures: async ({ day }) => {
      const orders = typeof day === 'string' ? ORDERS[day] : undefined;
      if (orders === undefined) throw new ToolFailure('There are no figures of that day.');
      return { orders_usd: [...orders] };
    },
    read_stock: async () => ({ rope_metres: 900, lanterns: 3 }),
    send_report: async ({ text }, { runId }) => {
      if (typeof text !== 'string') throw new ToolFailure('text must be a string.');
      return { status: 'ok', number: sendReport(dataDir, { text, run_id: runId }) };
    },
  };
}
