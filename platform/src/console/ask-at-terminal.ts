import { createInterface } from 'node:readline/promises';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { edit, type Human, type HumanAnswer } from './human.ts';

const QUESTION = '    approve (a), approve with another amount (such as 800), or reject (r)? ';

/** Asks the person at the terminal, on standard error, because standard output is for results. */
export function askAtTerminal(): Human {
  return { description: 'asked at this terminal', canCorrect: true, answer };
}

async function answer(approval: Approval): Promise<HumanAnswer> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // readline handles Ctrl-C while it reads; forward it to the process.
  terminal.once('SIGINT', () => {
    terminal.close();
    process.kill(process.pid, 'SIGINT');
  });
  try {
    for (;;) {
      const understood = understand(approval, await terminal.question(QUESTION));
      if (understood !== undefined) return understood;
    }
  } finally {
    terminal.close();
  }
}

function understand(approval: Approval, line: string): HumanAnswer | undefined {
  const word = line.trim().toLowerCase();
  if (word === 'a' || word === 'approve') return { kind: 'approve' };
  if (word === 'r' || word === 'reject') return { kind: 'reject' };
  const amount = Number(word.replace(/\s*usd$/, ''));
  return word !== '' && Number.isFinite(amount)
    ? edit(approval, { amount_usd: amount })
    : undefined;
}
