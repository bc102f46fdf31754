import { spawn } from 'node:child_process';
import { findGoCaller } from '../../scripts/go.ts';
import { findPython, PYTHON_FOLDER } from '../../scripts/python.ts';

/** A client program in another language. */
export interface CallerProgram {
  readonly language: string;
  /** The command line without arguments; empty when the toolchain is missing. */
  readonly command: readonly string[];
  /** The prefix of flags. */
  readonly dash: '-' | '--';
}

/** The outcome of a program. */
export interface Called {
  readonly code: number | null;
  /** Lines of standard output. */
  readonly lines: readonly string[];
  readonly stderr: string;
}

/**
 * Returns the client programs. A program whose toolchain is missing has no command and is named on standard
 * error.
 * @throws Error when WRIT_REQUIRE_TOOLCHAINS is 1 and a toolchain is missing
 */
export function callerPrograms(): CallerProgram[] {
  const go = findGoCaller();
  const python = findPython();
  return [
    {
      language: 'Go',
      command: 'missing' in go ? skipped('Go', go.missing) : [go.binary],
      dash: '-',
    },
    {
      language: 'Python',
      command:
        'missing' in python ? skipped('Python', python.missing) : [python.python, '-m', 'caller'],
      dash: '--',
    },
  ];
}

function skipped(language: string, why: string): [] {
  const notice = `The ${language} client is not tested: ${why}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
  return [];
}

/** Runs a program once; it inherits only PATH and the compile cache from this environment. */
export function callProgram(
  { command: [file = '', ...first] }: CallerProgram,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Called> {
  return new Promise((done, fail) => {
    const child = spawn(file, [...first, ...args], {
      cwd: PYTHON_FOLDER,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', fail);
    child.on('close', (code) =>
      done({ code, lines: output.trimEnd().split('\n'), stderr: stderr.trim() }),
    );
  });
}
