import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The figures of a peer. */
export interface PeerFigures {
  readonly id: string;
  readonly name: string;
  /** Version of its package; empty for Writ and for agent-proxy. */
  readonly version: string;
  readonly enforces: string;
  readonly durable: string;
  /** Median duration of one run alone, milliseconds; undefined when it was not measured. */
  readonly p50Ms?: number;
  /** Runs per second with 16 in flight; undefined when it was not measured. */
  readonly perSecond?: number;
  /** Why the peer was not measured. */
  readonly error?: string;
}

/** The report of `npm run bench -- peers`. */
export interface PeerReport {
  /** RFC 3339. */
  readonly measuredAt: string;
  readonly machine: string;
  readonly rounds: number;
  readonly secondsPerRound: number;
  readonly peers: readonly PeerFigures[];
}

/** Prints a table in Markdown, and the errors of peers that were not measured. */
export function printReport({ measuredAt, machine, rounds, secondsPerRound, peers }: PeerReport) {
  console.log(`${measuredAt}, ${machine}, ${rounds} rounds of ${secondsPerRound} s`);
  console.log('| peer | version | p50 alone, ms | runs/s, 16 in flight | enforces | durable |');
  console.log('|---|---|---|---|---|---|');
  for (const { name, version, p50Ms, perSecond, enforces, durable } of peers) {
    const figures = [p50Ms?.toFixed(1), perSecond?.toFixed(0)].map(
      (text) => text ?? 'not measured',
    );
    console.log(`| ${[name, version, ...figures, enforces, durable].join(' | ')} |`);
  }
  for (const { name, error } of peers) if (error !== undefined) console.log(`${name}: ${error}`);
}

/** Writes `peers.json` and `peers.svg` to a folder. */
export function writeReport(report: PeerReport, folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'peers.json'), `${JSON.stringify(report, undefined, 2)}\n`);
  writeFileSync(join(folder, 'peers.svg'), chartOf(report));
  console.log(`written: ${join(folder, 'peers.json')} and peers.svg`);
}

const ROW = 22;
const LABELS = 260;
const BARS = 300;
const HEAD = 30;

/** Returns a chart with two groups of bars: the median of one run alone, and runs per second. */
function chartOf({ peers }: PeerReport): string {
  const shown = peers.filter(({ error }) => error === undefined);
  const height = 2 * (HEAD + shown.length * ROW) + 10;
  const groups = [
    bars('p50 of one run alone, ms (shorter is better)', shown, ({ p50Ms = 0 }) => p50Ms, 0),
    bars(
      'runs/s with 16 in flight (longer is better)',
      shown,
      ({ perSecond = 0 }) => perSecond,
      HEAD + shown.length * ROW,
    ),
  ];
  const size = `width="${LABELS + BARS + 80}" height="${height}"`;
  const style = 'font-family="sans-serif" font-size="12" fill="currentColor"';
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}>\n${groups.join('\n')}\n</svg>\n`;
}

function bars(
  title: string,
  peers: readonly PeerFigures[],
  of: (peer: PeerFigures) => number,
  top: number,
): string {
  const longest = Math.max(...peers.map(of));
  const rows = peers.map((peer, index) => {
    const y = top + HEAD + index * ROW;
    const width = Math.max(1, (of(peer) / longest) * BARS).toFixed(1);
    const fill = peer.id === 'writ' ? '#2563eb' : '#94a3b8';
    return [
      `<text x="${LABELS - 8}" y="${y + 12}" text-anchor="end">${escaped(peer.name)}</text>`,
      `<rect x="${LABELS}" y="${y}" width="${width}" height="16" fill="${fill}"/>`,
      `<text x="${LABELS + Number(width) + 6}" y="${y + 12}">${of(peer).toFixed(1)}</text>`,
    ].join('');
  });
  return [`<text x="8" y="${top + 18}" font-weight="bold">${title}</text>`, ...rows].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
