import { spawn } from 'node:child_process';
import { findGoCaller } from '../../scripts/go.ts';
import { findPython, PYTHON_FOLDER } from '../../scripts/python.ts';

/** A program in another language that calls Writ. */
export interface CallerProgram {
  readonly language: string;
  /** What to run before its own arguments; empty when it is not there. */
  readonly command: readonly string[];
  /** Two dashes before a flag, or one. */
  readonly dash: '-' | '--';
}

/** How a call of a program ended. */
export interface Called {
  readonly code: number | null;
  /** Lines of standard output. */
  readonly lines: readonly string[];
  readonly complaint: string;
}

/**
 * The programs, without a command where they cannot be run here. Those are named on standard error; where
 * toolchains are required that is an error.
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
  const said = `The caller in ${language} is not tested: ${why}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(said);
  process.stderr.write(`skipped: ${said}\n`);
  return [];
}

/** Runs a program once, with nothing of this process's environment but the PATH. */
export function callProgram(
  { command: [file = '', ...first] }: CallerProgram,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Called> {
  return new Promise((done, fail) => {
    const child = spawn(file, [...first, ...args], {
      cwd: PYTHON_FOLDER,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      complaint += chunk;
    });
    child.on('error', fail);
    child.on('close', (code) =>
      done({ code, lines: output.trimEnd().split('\n'), complaint: complaint.trim() }),
    );
  });
}
