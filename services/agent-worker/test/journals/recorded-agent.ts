import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentRow } from '../../src/store/agents.ts';

/** The release for which journals are recorded; the recordings of earlier releases stay in their folders. */
export const RELEASE = '0.1';

/** Folder of the recordings of a release, one file for each run. */
export function recordingsOf(release: string): string {
  return join(import.meta.dirname, 'recordings', release);
}

/** The columns of an agent that a recording keeps, as its worker stored them. */
export const AGENT_COLUMNS = [
  'instance',
  'name',
  'kind',
  'session_id',
  'manifest',
  'supervision',
  'stop_reason',
  'code_version',
  'reply_to',
] as const satisfies readonly (keyof AgentRow)[];

/** An entry of a recorded journal, as its worker stored it. */
export interface RecordedEntry {
  readonly segment: number;
  readonly branch: string;
  readonly position: number;
  readonly part: number;
  readonly kind: string;
  readonly args_digest: string;
  readonly value: unknown;
}

/** A checkpoint of a recorded agent. */
interface RecordedCheckpoint {
  readonly segment: number;
  readonly prologue: number;
  readonly position: number;
  readonly items_from: number;
  readonly state: unknown;
  readonly receipts: unknown;
  readonly items: readonly unknown[];
}

/** One agent of a recorded run. */
export interface RecordedAgent {
  readonly agent: Pick<AgentRow, (typeof AGENT_COLUMNS)[number]>;
  readonly inbox: readonly unknown[];
  readonly entries: readonly RecordedEntry[];
  /** Names of the signals that the agent received. */
  readonly signals: readonly string[];
  readonly checkpoint?: RecordedCheckpoint;
}

/**
 * Returns the lines of a recording: for each agent, one line with everything but its entries, and one line for each
 * journal entry.
 */
export function linesOf(agents: readonly RecordedAgent[]): string {
  const lines = agents.flatMap(({ entries, ...head }) => [
    JSON.stringify(head),
    ...entries.map((entry) => JSON.stringify(entry)),
  ]);
  return `${lines.join('\n')}\n`;
}

/** Reads a recording. */
function agentsIn(text: string): RecordedAgent[] {
  const agents: (RecordedAgent & { entries: RecordedEntry[] })[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const value = JSON.parse(line);
    if ('agent' in value) agents.push({ ...value, entries: [] });
    else agents.at(-1)?.entries.push(value);
  }
  return agents;
}

/** Reads the recordings of all releases, by release and name of the run. */
export function readRecordings(): ReadonlyMap<string, readonly RecordedAgent[]> {
  const releases = readdirSync(recordingsOf('')).toSorted();
  return new Map(
    releases.flatMap((release) => {
      const folder = recordingsOf(release);
      return readdirSync(folder).map(
        (file) =>
          [
            `${release}/${file.replace('.jsonl', '')}`,
            agentsIn(readFileSync(join(folder, file), 'utf8')),
          ] as const,
      );
    }),
  );
}

/** Sorts entries in the order in which the agent requests them; entries of concurrent branches are sorted by branch. */
export function inOrder(entries: readonly RecordedEntry[]): RecordedEntry[] {
  return entries.toSorted((one, other) => {
    const [left, right] = [pathOf(one), pathOf(other)];
    const at = left.findIndex((number, index) => number !== right[index]);
    return at === -1 ? left.length - right.length : (left[at] ?? -1) - (right[at] ?? -1);
  });
}

function pathOf({ branch, position, part }: RecordedEntry): number[] {
  const path = branch === '' ? [] : branch.split('.').map(Number);
  return [...path, position, part];
}
