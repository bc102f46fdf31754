import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A sent report. */
export interface Report {
  readonly text: string;
  readonly run_id: string;
}

/** Sends a report: appends it to a file in `dataDir`. Returns its number within its run. */
export function sendReport(dataDir: string, report: Report): number {
  mkdirSync(dataDir, { recursive: true });
  appendFileSync(fileIn(dataDir), `${JSON.stringify(report)}\n`, { flush: true });
  return sentReports(dataDir).filter(({ run_id }) => run_id === report.run_id).length;
}

/** Every sent report, the oldest first. */
export function sentReports(dataDir: string): Report[] {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Report);
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'sent-reports.jsonl');
}
