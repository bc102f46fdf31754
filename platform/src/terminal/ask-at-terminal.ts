import { createInterface, type Interface } from 'node:readline/promises';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import type { Human, HumanAnswer } from './human.ts';
import { questionOf, understand } from './questions.ts';

const INDENT = '    ';

/** Reads one line after a prompt; undefined at the end of the input. */
type Ask = (prompt: string, signal: AbortSignal) => Promise<string | undefined>;

/**
 * Asks the person at the terminal, or reads one answer per line from a pipe. It asks on standard error, because
 * standard output is for results, and one question at a time. At the end of the input, and after `close`, approvals
 * stay open.
 */
export function askAtTerminal(): Human {
  const { ask, close } = process.stdin.isTTY ? keyboard() : pipe();
  let previous: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  return {
    description: 'answered by you, with the development key',
    isPerson: true,
    answer: (approval, signal) => {
      const answered = previous.then(async () =>
        // A question after `close` would keep the terminal open, so that the process could not exit.
        isClosed ? undefined : await answer(ask, approval, signal),
      );
      previous = answered.catch(() => undefined);
      return answered;
    },
    close: () => {
      isClosed = true;
      close();
    },
  };
}

async function answer(
  ask: Ask,
  approval: Approval,
  signal: AbortSignal,
): Promise<HumanAnswer | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const line = await ask(INDENT + questionOf(approval), signal);
    if (line === undefined) return undefined;
    const understood = understand(approval, line);
    if ('answer' in understood) return understood.answer;
    console.error(INDENT + understood.problem);
  }
}

/** Opens readline for each question, so that between questions Ctrl-C works and no input is read in advance. */
function keyboard(): { readonly ask: Ask; close(): void } {
  let lines: Interface | undefined;
  return {
    async ask(prompt, signal) {
      const asked = createInterface({ input: process.stdin, output: process.stderr });
      lines = asked;
      // readline handles Ctrl-C while it reads; the process receives the signal before the question ends.
      asked.once('SIGINT', () => {
        if (!process.emit('SIGINT', 'SIGINT')) process.kill(process.pid, 'SIGINT');
        asked.close();
      });
      let line: string | undefined;
      try {
        line = await new Promise((resolve, reject) => {
          asked.once('close', () => resolve(undefined));
          asked.question(prompt, { signal }).then(resolve, reject);
        });
      } catch (error) {
        // Ctrl-D rejects the question, too.
        if (signal.aborted) throw error;
      } finally {
        lines = undefined;
        asked.close();
        // Ends the line of the unanswered question.
        if (line === undefined) process.stderr.write('\n');
      }
      return line;
    },
    close: () => lines?.close(),
  };
}

/**
 * Reads answers from a pipe with one reader for all questions, because several lines may arrive together. Echoes each
 * answer.
 */
function pipe(): { readonly ask: Ask; close(): void } {
  const lines = createInterface({ input: process.stdin });
  const reader = lines[Symbol.asyncIterator]();
  let next: Promise<IteratorResult<string, unknown>> | undefined;
  return {
    async ask(prompt, signal) {
      process.stderr.write(prompt);
      next ??= reader.next();
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      try {
        const { done, value } = await Promise.race([next, aborted]);
        next = undefined;
        process.stderr.write(done === true ? '\n' : `${value}\n`);
        return done === true ? undefined : value;
      } catch (error) {
        process.stderr.write('\n');
        throw error;
      }
    },
    close: () => {
      lines.close();
      process.stdin.destroy();
    },
  };
}
