import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@writ/testing/distributed';
import { startDedicatedPostgres } from '@writ/testing/postgres';
import { checkOut, hasCommit, type PreviousBuild } from '../upgrade/previous-build.ts';
import type { BenchOptions } from './bench.ts';
import { median } from './measure.ts';
import { FORMER_COMMIT } from './writers/former-work.ts';
import type { MeasureAnswer, MeasureRequest } from './writers/process.ts';
import type { WorkName } from './writers/work.ts';

const WORK_NAMES: readonly WorkName[] = ['spawn-budget', 'execution-meter', 'one-tenant'];
const SHAPES = [1, 2, 4].flatMap((processes) =>
  [1, 4, 16].filter((writers) => writers >= processes).map((writers) => ({ processes, writers })),
);
const DEFAULT_ROUNDS = 3;
const DEFAULT_SECONDS = 2;
const WARM_UP_MS = 2_000;
/** Minimum throughput of 16 writers in 4 processes relative to the former lock. */
const MIN_RATIO = 3;
const CROWDED = { processes: 4, writers: 16 };

/**
 * The compared kinds of locking, in order of measurement. `former lock`: the store at {@link FORMER_COMMIT};
 * `one lock`: this store with one lock for all transactions; `by run`: this store with a lock for each run.
 */
const LOCKS = ['former lock', 'one lock', 'by run'] as const;
type Lock = (typeof LOCKS)[number];

/** The figures that are compared. */
type Figures = Pick<MeasureAnswer, 'perSecond' | 'p50Ms'>;

/** The figures of one combination of work, processes and writers. */
interface ShapeFigures {
  readonly work: WorkName;
  readonly processes: number;
  readonly writers: number;
  /** Medians of the transactions per second, and of the p50 of a transaction in milliseconds. */
  readonly perSecond: Readonly<Record<Lock, number>>;
  readonly p50Ms: Readonly<Record<Lock, number>>;
  /** Medians over the rounds of the throughput with a lock for each run, relative to each kind of locking. */
  readonly ratios: Readonly<Record<Lock, number>>;
}

/**
 * Measures transactions of the store code of the services on PostgreSQL with fsync: writers in several processes, each
 * with its own run, under the former lock, under one lock and with a lock for each run, in alternating rounds. For the
 * meter, it also measures runs that all belong to one tenant. Prints a table and writes `writers.json`. Returns whether
 * 16 writers of spawn-budget in 4 processes commit more than a single writer, and at least {@link MIN_RATIO} times as
 * much as under the former lock; the former lock is not measured when this clone lacks its commit.
 */
export async function benchWriters(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const stack = new AsyncDisposableStack();
  try {
    const [port = 0] = await freePorts(1);
    const settings = { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' };
    const server = await startDedicatedPostgres(port, undefined, settings);
    stack.defer(() => server.stop());
    const build = formerBuild();
    if (build !== undefined) stack.defer(() => build.remove());
    const processes = Array.from({ length: CROWDED.processes }, () => new WriterProcess());
    for (const process of processes) stack.defer(() => process.stop());
    const figures: ShapeFigures[] = [];
    for (const work of WORK_NAMES) {
      const measured = new Measured(processes, work, { url: server.url(), build: build?.folder });
      figures.push(...(await measured.all(rounds, seconds * 1_000)));
    }
    print(figures, rounds, seconds);
    mkdirSync(outDir, { recursive: true });
    const machine = machineName();
    const report = { measuredAt: new Date().toISOString(), machine, rounds, seconds, figures };
    writeFileSync(join(outDir, 'writers.json'), `${JSON.stringify(report, null, 2)}\n`);
    return verdict(figures);
  } finally {
    await stack.disposeAsync();
  }
}

/** Measures one kind of work in alternating rounds. */
class Measured {
  readonly #processes: readonly WriterProcess[];
  readonly #work: WorkName;
  readonly #url: string;
  readonly #build: string | undefined;
  readonly #locks: readonly Lock[];

  /** @param place URL of the server, and source tree of the former lock (undefined: not measured) */
  constructor(
    processes: readonly WriterProcess[],
    work: WorkName,
    place: { readonly url: string; readonly build: string | undefined },
  ) {
    this.#processes = processes;
    this.#work = work;
    this.#url = place.url;
    this.#build = place.build;
    this.#locks = LOCKS.filter((lock) => lock !== 'former lock' || place.build !== undefined);
  }

  async all(rounds: number, forMs: number): Promise<ShapeFigures[]> {
    for (const lock of this.#locks) await this.#measure(CROWDED, lock, WARM_UP_MS);
    const measured = SHAPES.map((shape) => ({
      shape,
      rounds: [] as Record<Lock, Figures>[],
    }));
    for (let round = 0; round < rounds; round += 1) {
      for (const { shape, rounds: ofShape } of measured) {
        const figures = new Map<Lock, Figures>();
        for (const lock of this.#locks) {
          figures.set(lock, await this.#measure(shape, lock, forMs));
        }
        ofShape.push(Object.fromEntries(figures) as Record<Lock, Figures>);
      }
    }
    return measured.map(({ shape, rounds: ofShape }) => {
      const ofLocks = (middle: (round: Record<Lock, Figures>, lock: Lock) => number) => {
        const figures = this.#locks.map(
          (lock) => [lock, median(ofShape.map((round) => middle(round, lock)))] as const,
        );
        return Object.fromEntries(figures) as Record<Lock, number>;
      };
      return {
        work: this.#work,
        ...shape,
        perSecond: ofLocks((round, lock) => round[lock].perSecond),
        p50Ms: ofLocks((round, lock) => round[lock].p50Ms),
        ratios: ofLocks((round, lock) => round['by run'].perSecond / round[lock].perSecond),
      };
    });
  }

  async #measure(
    { processes, writers }: { readonly processes: number; readonly writers: number },
    lock: Lock,
    forMs: number,
  ): Promise<Figures> {
    const request: MeasureRequest = {
      work: this.#work,
      location: {
        dialect: 'postgres',
        url: this.#url,
        schema: `${this.#work.replace('-', '_')}${lock === 'former lock' ? '_former' : ''}`,
        oneAtATime: lock !== 'by run',
        ...(lock === 'former lock' && { build: this.#build }),
      },
      writers: writers / processes,
      forMs,
    };
    const answers = await Promise.all(
      this.#processes.slice(0, processes).map((process) => process.measure(request)),
    );
    return {
      perSecond: answers.reduce((sum, { perSecond }) => sum + perSecond, 0),
      p50Ms: median(answers.map(({ p50Ms }) => p50Ms)),
    };
  }
}

/** A process with writers. */
export class WriterProcess {
  readonly #child: ChildProcess = fork(
    fileURLToPath(new URL('writers/process.ts', import.meta.url)),
  );

  async measure(request: MeasureRequest): Promise<MeasureAnswer> {
    const answered = once(this.#child, 'message');
    this.#child.send(request);
    const [answer] = (await answered) as [MeasureAnswer | { readonly error: string }];
    if ('error' in answer) throw new Error(answer.error);
    return answer;
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    if (this.#child.kill()) await exited;
  }
}

/** Returns the number of cores, the processor and the Node version of this machine. */
export function machineName(): string {
  return `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`;
}

/**
 * Returns the source tree of the former lock; prints a message and returns undefined when this clone lacks the commit.
 */
function formerBuild(): PreviousBuild | undefined {
  if (hasCommit(FORMER_COMMIT)) return checkOut(FORMER_COMMIT);
  console.log(
    `Not measured: the former lock, because the history of this clone lacks commit ${FORMER_COMMIT.slice(0, 7)} (git fetch --unshallow).`,
  );
  return undefined;
}

function print(figures: readonly ShapeFigures[], rounds: number, seconds: number): void {
  console.log(`${machineName()}, ${rounds} rounds of ${seconds} s`);
  const locks = LOCKS.filter((lock) =>
    figures.some(({ perSecond }) => perSecond[lock] !== undefined),
  );
  const others = locks.filter((lock) => lock !== 'by run');
  const columns = [
    'service',
    'processes',
    'writers',
    ...locks.map((lock) => `${lock}, transactions/s`),
    ...others.map((lock) => `ratio to ${lock}`),
    ...locks.map((lock) => `${lock}, p50 ms`),
  ];
  console.log(`| ${columns.join(' | ')} |`);
  console.log(`|${columns.map(() => '---').join('|')}|`);
  for (const { work, processes, writers, perSecond, p50Ms, ratios } of figures) {
    const cells = [
      ...locks.map((lock) => perSecond[lock].toFixed(0)),
      ...others.map((lock) => ratios[lock].toFixed(2)),
      ...locks.map((lock) => p50Ms[lock].toFixed(2)),
    ];
    console.log(`| ${[work, processes, writers, ...cells].join(' | ')} |`);
  }
}

function verdict(figures: readonly ShapeFigures[]): boolean {
  const [name] = WORK_NAMES;
  const of = (processes: number, writers: number) =>
    figures.find(
      (each) => each.work === name && each.processes === processes && each.writers === writers,
    );
  const crowded = of(CROWDED.processes, CROWDED.writers);
  const alone = of(1, 1)?.perSecond['by run'] ?? Number.NaN;
  const { ratios, perSecond } = crowded ?? {};
  const isMore = (perSecond?.['by run'] ?? Number.NaN) > alone;
  const toOne = (ratios?.['one lock'] ?? Number.NaN).toFixed(2);
  const toFormer = ratios?.['former lock'];
  const than = `${toOne} times what they commit under one lock, and ${isMore ? '' : 'not '}more than one writer alone`;
  const what = `16 writers in 4 processes of ${name} commit`;
  if (toFormer === undefined) {
    console.log(`${isMore ? 'PASS' : 'FAIL'}, without the former lock: ${what} ${than}.`);
    return isMore;
  }
  const isEnough = toFormer >= MIN_RATIO && isMore;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: ${what} ${toFormer.toFixed(2)} times what they commit under the former lock (minimum ${MIN_RATIO}), ${than}.`,
  );
  return isEnough;
}
