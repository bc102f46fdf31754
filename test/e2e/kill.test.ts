import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { derivedId } from '@writ/kernel';
import { readRequestLog } from '@writ/testing/simulator';
import { afterEach, describe, expect, it } from 'vitest';

const MAIN = resolve(import.meta.dirname, '../../platform/src/main.ts');
const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

let dataDir: string;
let child: ChildProcess | undefined;

afterEach(() => {
  child?.kill('SIGKILL');
  rmSync(dataDir, { recursive: true, force: true });
});

interface Started {
  readonly exited: Promise<number | null>;
  output(): string;
  /** Resolves when the output contains `text`; rejects when the process ends first. */
  printed(text: string): Promise<void>;
}

function start(...args: string[]): Started {
  const process_ = spawn(process.execPath, [MAIN, '--exit', '--human', 'cap:800', ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      WRIT_DATA: dataDir,
      WRIT_LOG_LEVEL: 'error',
      // No grant outlives a restart, or a person who thinks: each has to be had anew.
      WRIT_SLOT_GRANT_TTL: '500ms',
      ...FREE_PORTS,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child = process_;
  let output = '';
  const waiting = new Set<() => void>();
  const take = (chunk: Buffer) => {
    output += chunk.toString();
    for (const look of waiting) look();
  };
  process_.stdout.on('data', take);
  process_.stderr.on('data', take);
  const exited = once(process_, 'exit').then(([code]) => code as number | null);
  return {
    exited,
    output: () => output,
    printed: (text) =>
      new Promise((done, fail) => {
        const look = () => {
          if (output.includes(text)) done();
        };
        waiting.add(look);
        look();
        void exited.then(() => fail(new Error(`It ended without saying ${text}:\n${output}`)));
      }),
  };
}

describe('a platform that is killed in the middle of a run', () => {
  it.each([
    ['after the first step', 'read_only_context'],
    ['while a person is being asked', 'high_refund_requires_human'],
    ['once the refund was approved', 'approved_with_cap:800'],
    ['after the refund', 'email_after_refund'],
  ])(
    'finishes the run after a restart, %s, with one refund and no model call twice (RT-1, RT-3, EM-7, TG-5, SYS-5)',
    async (_, text) => {
      dataDir = mkdtempSync(join(tmpdir(), 'writ-kill-'));
      const first = start();
      await first.printed(text);
      child?.kill('SIGKILL');
      await first.exited;
      const recorded = recordedAnswers();
      expect(recorded).not.toEqual([]);

      const second = start();
      expect(await second.exited, second.output()).toBe(0);
      expect(second.output()).toContain('left this run unfinished');
      expect(second.output()).toContain('success');
      expect(readLedger(dataDir).refunds).toMatchObject([{ user_id: 42, amount_cents: 80_000 }]);
      const asked = readRequestLog(join(dataDir, 'simulator-requests.jsonl'));
      for (const answer of recorded) {
        expect(asked.filter(({ request_id: id }) => id === answer.thisAttempt)).toHaveLength(1);
        expect(asked.filter(({ request_id: id }) => id === answer.nextAttempt)).toEqual([]);
      }
    },
    60_000,
  );
});

/** The model answers that the meter has recorded, as the request ids of their attempt and of a next one. */
function recordedAnswers() {
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
