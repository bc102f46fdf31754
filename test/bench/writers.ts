import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@writ/testing/distributed';
import { startDedicatedPostgres } from '@writ/testing/postgres';
import type { BenchOptions } from './bench.ts';
import { median } from './measure.ts';
import type { MeasureAnswer, MeasureRequest } from './writers/process.ts';
import type { WorkName } from './writers/work.ts';

const WORK_NAMES: readonly WorkName[] = ['spawn-budget', 'execution-meter'];
const SHAPES = [1, 2, 4].flatMap((processes) =>
  [1, 4, 16].filter((writers) => writers >= processes).map((writers) => ({ processes, writers })),
);
const DEFAULT_ROUNDS = 3;
const DEFAULT_SECONDS = 2;
const WARM_UP_MS = 2_000;
/** Minimum throughput of 16 writers in 4 processes relative to one lock. */
const MIN_RATIO = 3;
const CROWDED = { processes: 4, writers: 16 };

/** Both ways of locking, in the order in which they are measured. */
const LOCKS = ['one lock', 'by run'] as const;
type Lock = (typeof LOCKS)[number];

/** What is compared. */
type Figures = Pick<MeasureAnswer, 'perSecond' | 'p50Ms'>;

/** The figures of one shape. */
interface ShapeFigures {
  readonly work: WorkName;
  readonly processes: number;
  readonly writers: number;
  /** Medians of the transactions per second, and of the p50 of a transaction in milliseconds. */
  readonly perSecond: Readonly<Record<Lock, number>>;
  readonly p50Ms: Readonly<Record<Lock, number>>;
  /** Median over the rounds of the throughput relative to one lock. */
  readonly ratio: number;
}

/**
 * Measures transactions of the services' own store code on PostgreSQL with fsync: writers, each in a run of its own, in
 * several processes, under one lock and with a lock for each run, in alternating rounds. Prints a table and writes
 * `writers.json`. Returns whether 16 writers in 4 processes commit at least {@link MIN_RATIO} times as much as under one lock
 * and more than one writer alone.
 */
export async function benchWriters(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const stack = new AsyncDisposableStack();
  try {
    const [port = 0] = await freePorts(1);
    const settings = { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' };
    const server = await startDedicatedPostgres(port, undefined, settings);
    stack.defer(() => server.stop());
    const processes = Array.from({ length: CROWDED.processes }, () => new WriterProcess());
    for (const process of processes) stack.defer(() => process.stop());
    const figures: ShapeFigures[] = [];
    for (const work of WORK_NAMES) {
      const measured = new Measured(processes, work, server.url());
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

/** The rounds of one service. */
class Measured {
  readonly #processes: readonly WriterProcess[];
  readonly #work: WorkName;
  readonly #url: string;

  constructor(processes: readonly WriterProcess[], work: WorkName, url: string) {
    this.#processes = processes;
    this.#work = work;
    this.#url = url;
  }

  async all(rounds: number, forMs: number): Promise<ShapeFigures[]> {
    for (const lock of LOCKS) await this.#measure(CROWDED, lock, WARM_UP_MS);
    const measured = SHAPES.map((shape) => ({
      shape,
      rounds: [] as Record<Lock, Figures>[],
    }));
    for (let round = 0; round < rounds; round += 1) {
      for (const { shape, rounds: ofShape } of measured) {
        ofShape.push({
          'one lock': await this.#measure(shape, 'one lock', forMs),
          'by run': await this.#measure(shape, 'by run', forMs),
        });
      }
    }
    return measured.map(({ shape, rounds: ofShape }) => {
      const middle = (lock: Lock, figure: keyof Figures) =>
        median(ofShape.map((each) => each[lock][figure]));
      const both = (figure: keyof Figures) => ({
        'one lock': middle('one lock', figure),
        'by run': middle('by run', figure),
      });
      const ratios = ofShape.map((each) => each['by run'].perSecond / each['one lock'].perSecond);
      return {
        work: this.#work,
        ...shape,
        perSecond: both('perSecond'),
        p50Ms: both('p50Ms'),
        ratio: median(ratios),
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
        schema: this.#work.replace('-', '_'),
        oneAtATime: lock === 'one lock',
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

/** The machine of a measurement. */
export function machineName(): string {
  return `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`;
}

function print(figures: readonly ShapeFigures[], rounds: number, seconds: number): void {
  console.log(`${machineName()}, ${rounds} rounds of ${seconds} s`);
  console.log(
    '| service | processes | writers | one lock, transactions/s | by run | ratio | p50 ms, one lock | by run |',
  );
  console.log('|---|---|---|---|---|---|---|---|');
  for (const { work, processes, writers, perSecond, p50Ms, ratio } of figures) {
    const throughput = LOCKS.map((lock) => perSecond[lock].toFixed(0));
    const latency = LOCKS.map((lock) => p50Ms[lock].toFixed(2));
    console.log(
      `| ${[work, processes, writers, ...throughput, ratio.toFixed(2), ...latency].join(' | ')} |`,
    );
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
  const { ratio = Number.NaN, perSecond } = crowded ?? {};
  const isMore = (perSecond?.['by run'] ?? Number.NaN) > alone;
  const isEnough = ratio >= MIN_RATIO && isMore;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: 16 writers in 4 processes of ${name} commit ${ratio.toFixed(2)} times what they commit under one lock (minimum ${MIN_RATIO}), and ${isMore ? '' : 'not '}more than one writer alone.`,
  );
  return isEnough;
}
