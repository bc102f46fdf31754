import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';

const SOURCE = resolve(import.meta.dirname, '../src');

const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

/** The exit code and output of a program that has ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of {@link spawnProgram}. */
export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Default: a temporary folder. */
  readonly dataDir?: string;
  /** Standard input; default: none. 'open' is a pipe that stays open and empty. */
  readonly input?: string;
  /**
   * Whether the program runs in its own process group, so that a test can send a signal to the group as a terminal does
   * on Ctrl-C.
   */
  readonly ownGroup?: boolean;
}

/** A folder that is removed after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'writ-program-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A running program, without a terminal; killed after the test. */
export class Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';
  readonly #readers = new Set<() => void>();

  constructor(
    command: string,
    args: readonly string[],
    { env, dataDir = tempFolder(), input, ownGroup = false }: ProgramOptions = {},
  ) {
    this.child = spawn(command, args, {
      detached: ownGroup,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        WRIT_DATA: dataDir,
        ...FREE_PORTS,
        ...env,
      },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    onTestFinished(() => {
      this.child.kill('SIGKILL');
    });
    if (input !== 'open') this.child.stdin?.end(input);
    this.child.stdout?.on('data', (chunk) => this.#append(() => (this.#stdout += chunk)));
    this.child.stderr?.on('data', (chunk) => this.#append(() => (this.#stderr += chunk)));
    this.ended = once(this.child, 'close').then(([code]) => ({
      code: code as number | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /**
   * Waits until the standard output matches `pattern`, and resolves with the output up to that point; rejects when the
   * program ends first.
   */
  printed(pattern: RegExp): Promise<string> {
    return new Promise((resolvePrinted, reject) => {
      const read = () => {
        if (pattern.test(this.#stdout)) resolvePrinted(this.#stdout);
      };
      this.#readers.add(read);
      read();
      void this.ended.then(({ stdout, stderr }) =>
        reject(new Error(`The program ended before it printed ${pattern}:\n${stdout}${stderr}`)),
      );
    });
  }

  #append(append: () => void): void {
    append();
    for (const read of this.#readers) read();
  }
}

/** Starts `platform/src/main.ts` or `demo.ts`. */
export function spawnProgram(
  program: 'demo.ts' | 'main.ts',
  args: readonly string[],
  options: ProgramOptions = {},
): Program {
  return new Program(process.execPath, [join(SOURCE, program), ...args], options);
}

/** Runs a program to its end. */
export function run(
  program: 'demo.ts' | 'main.ts',
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Ended> {
  return spawnProgram(program, args, options).ended;
}
