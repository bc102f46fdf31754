/** One process of `npm run bench -- writers`: measures writers on request of its parent. */
import { measure, type Operation, type Speed } from '../measure.ts';
import { FORMER_WORKS } from './former-work.ts';
import { type Location, WORKS, type Work, type WorkName } from './work.ts';

/** A request to measure writers. */
export interface MeasureRequest {
  readonly work: WorkName;
  readonly location: Location;
  readonly writers: number;
  readonly forMs: number;
}

/** The figures of one process; `perSecond` counts transactions. */
export interface MeasureAnswer extends Pick<Speed, 'perSecond' | 'p50Ms'> {
  readonly transactions: number;
  readonly commits: number;
  /** Processor time of the process, ms. */
  readonly processorMs: number;
}

interface Opened {
  readonly work: Work;
  readonly writers: ((n: number) => Promise<void>)[];
}

const opened = new Map<string, Promise<Opened>>();
let next = 0;

async function answer({ work, location, writers, forMs }: MeasureRequest): Promise<MeasureAnswer> {
  const { work: chosen, writers: prepared } = await open(work, location);
  while (prepared.length < writers) {
    prepared.push(await chosen.writer(`${process.pid}-${location.oneAtATime}-${prepared.length}`));
  }
  const idle = prepared.slice(0, writers);
  // Each writer makes one request at a time, in its own run.
  const operation: Operation = async () => {
    const writer = idle.pop();
    if (writer === undefined) throw new Error('Every writer is busy.');
    next += 1;
    await writer(next);
    idle.push(writer);
  };
  const commits = chosen.commits();
  const used = process.cpuUsage();
  const { operations, perSecond, p50Ms } = await measure(operation, writers, forMs);
  const { user, system } = process.cpuUsage(used);
  return {
    perSecond: perSecond * chosen.transactions,
    p50Ms: p50Ms / chosen.transactions,
    transactions: operations * chosen.transactions,
    commits: chosen.commits() - commits,
    processorMs: (user + system) / 1_000,
  };
}

function open(name: WorkName, location: Location): Promise<Opened> {
  const { build } = location;
  const key = `${name} ${location.oneAtATime} ${build}`;
  const known = opened.get(key);
  if (known !== undefined) return known;
  const work = build === undefined ? WORKS[name](location) : FORMER_WORKS[name](location, build);
  const opening = work.then((work) => ({ work, writers: [] }));
  opened.set(key, opening);
  return opening;
}

process.on('message', (request: MeasureRequest) => {
  void answer(request).then(
    (figures) => process.send?.(figures),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
