import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A published brief. */
export interface Brief {
  readonly title: string;
  readonly text: string;
  readonly run_id: string;
  readonly idempotency_key: string;
}

/** Publishes a brief to a file in `dataDir`. Not idempotent. Returns its number within its run. */
export function publish(dataDir: string, brief: Brief): number {
  mkdirSync(dataDir, { recursive: true });
  appendFileSync(fileIn(dataDir), `${JSON.stringify(brief)}\n`, { flush: true });
  return readShelf(dataDir).filter(({ run_id }) => run_id === brief.run_id).length;
}

/** Every published brief, the oldest first. */
export function readShelf(dataDir: string): Brief[] {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Brief);
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'published-briefs.jsonl');
}
