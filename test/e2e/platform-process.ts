import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { derivedId } from '@writ/kernel';
import { readRequestLog } from '@writ/simulator';

const MAIN = resolve(import.meta.dirname, '../../platform/src/main.ts');
const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

/** `npm start -- --exit` on a data folder, in a child process. */
export class PlatformProcess {
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();
  #output = '';

  constructor(dataDir: string, ...args: readonly string[]) {
    this.#child = spawn(process.execPath, [MAIN, '--exit', ...args], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        WRIT_DATA: dataDir,
        WRIT_LOG_LEVEL: 'error',
        // Short grants expire during a restart or a human decision, so each must be renewed.
        WRIT_SLOT_GRANT_TTL: '500ms',
        ...FREE_PORTS,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const append = (chunk: Buffer) => {
      this.#output += chunk.toString();
      for (const check of this.#waiting) check();
    };
    this.#child.stdout?.on('data', append);
    this.#child.stderr?.on('data', append);
    this.exited = once(this.#child, 'exit').then(([code]) => code as number | null);
  }

  /** The output that the process has written. */
  get output(): string {
    return this.#output;
  }

  /** Resolves when the output contains `text`; rejects when the process ends first. */
  printed(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (this.#output.includes(text)) resolve();
      };
      this.#waiting.add(check);
      check();
      void this.exited.then(() =>
        reject(new Error(`The process exited before it printed ${text}:\n${this.#output}`)),
      );
    });
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}

/**
 * Runs an example in a new data folder and kills it once it has printed `text`; returns the folder. Discards a run that
 * completes before the kill takes effect, which can happen on a busy machine, and retries.
 */
export async function killAfter(text: string, ...args: readonly string[]): Promise<string> {
  for (;;) {
    const dataDir = mkdtempSync(join(tmpdir(), 'writ-kill-'));
    const platform = new PlatformProcess(dataDir, ...args);
    await platform.printed(text);
    await platform.kill();
    if (hasUnfinishedRun(dataDir)) return dataDir;
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function hasUnfinishedRun(dataDir: string): boolean {
  const database = new DatabaseSync(join(dataDir, 'supervisor.db'));
  try {
    return database.prepare('SELECT 1 FROM runs WHERE result IS NULL').get() !== undefined;
  } finally {
    database.close();
  }
}

/** A recorded model answer: the request ids of its attempt and of the next one. */
export interface RecordedAnswer {
  readonly thisAttempt: string;
  readonly nextAttempt: string;
}

/** The model answers in the database of the meter. */
export function recordedAnswers(dataDir: string): RecordedAnswer[] {
  const ledger = new DatabaseSync(join(dataDir, 'execution-meter.db'), { readOnly: true });
  try {
    return ledger
      .prepare('SELECT * FROM calls WHERE answer IS NOT NULL')
      .all()
      .map((row) => {
        const idOf = (attempt: number) =>
          derivedId(
            'call',
            ...[row.tenant, row.run_id, row.agent_instance, row.call_id, attempt].map(String),
          );
        return {
          thisAttempt: idOf(Number(row.attempts)),
          nextAttempt: idOf(Number(row.attempts) + 1),
        };
      });
  } finally {
    ledger.close();
  }
}

/**
 * Returns the attempts of recorded answers that the model did not receive exactly once, or whose call it received again
 * as the next attempt.
 */
export function repeatedModelCalls(dataDir: string, recorded: readonly RecordedAnswer[]): string[] {
  const asked = new Map<string | null, number>();
  for (const { request_id: id } of readRequestLog(join(dataDir, 'simulator-requests.jsonl'))) {
    asked.set(id, (asked.get(id) ?? 0) + 1);
  }
  const times = (id: string) => asked.get(id) ?? 0;
  return recorded
    .filter(({ thisAttempt, nextAttempt }) => times(thisAttempt) !== 1 || times(nextAttempt) > 0)
    .map(({ thisAttempt }) => thisAttempt);
}
