import { type AgentKey, sha256Hex } from '@writ/kernel';
import { type Level, monthOf } from '../domain/ledger/balance.ts';

/** Key of all levels: an agent of a session on a UTC day. */
export interface LevelsKey extends AgentKey {
  readonly sessionId: string;
  readonly day: string;
}

/** A row id for each level. */
export type LevelIds = Readonly<Record<Level, string>>;

/** Returns the row ids of all levels; for a shared level, the id of slice 0, which is also the id of the level. */
export function rowIds({ tenant, runId, instance, sessionId, day }: LevelsKey): LevelIds {
  return {
    agent: `agent:${tenant}/${runId}/${instance}`,
    run: `run:${tenant}/${runId}`,
    session: `session:${tenant}/${sessionId}`,
    tenant_day: `day:${tenant}/${day}`,
    tenant_month: `month:${tenant}/${monthOf(day)}`,
  };
}

/** The shared levels, to which several runs book, in level order. */
export const SHARED_LEVELS = ['session', 'tenant_day', 'tenant_month'] as const;

/** One of {@link SHARED_LEVELS}. */
export type SharedLevel = (typeof SHARED_LEVELS)[number];

/** Whether a level is shared. */
export function isShared(level: Level): level is SharedLevel {
  return level !== 'agent' && level !== 'run';
}

/** Returns the ids of the rows that a slice books to. */
export function sliceIds(key: LevelsKey, slice: number): LevelIds {
  const ids = rowIds(key);
  if (slice === 0) return ids;
  const shared = SHARED_LEVELS.map((level) => [level, `${ids[level]}#${slice}`] as const);
  return { ...ids, ...Object.fromEntries(shared) };
}

/** Whether a row belongs to a level: it is the row of the level or of one of its slices. */
export function isOfLevel(rowId: string, levelId: string): boolean {
  return rowId === levelId || rowId.startsWith(`${levelId}#`);
}

/** Returns the number of the slice that a row belongs to. */
export function sliceOfRow(rowId: string): number {
  return Number(rowId.split('#')[1] ?? 0);
}

/** Returns the exclusive upper bound of the row ids of a level and its slices; `$` sorts after `#`. */
export function afterSlices(levelId: string): string {
  return `${levelId}$`;
}

/** Returns the ids of the rows with the caps that were set for a tenant at run time. */
export function capsIds(tenant: string) {
  return { tenant_day: `caps:day:${tenant}`, tenant_month: `caps:month:${tenant}` } as const;
}

/** Returns the number of the slice that a run books to. */
export function sliceOf(
  { tenant, runId }: Pick<AgentKey, 'tenant' | 'runId'>,
  slices: number,
): number {
  if (slices === 1) return 0;
  return Number.parseInt(sha256Hex(`${tenant}/${runId}`).slice(0, 8), 16) % slices;
}
