import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readRefunds } from '@writ/example-refund-desk/ledger';
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

      const second = start();
      expect(await second.exited, second.output()).toBe(0);
      expect(second.output()).toContain('went unfinished'.slice(5));
      expect(second.output()).toContain('success');
      expect(readRefunds(dataDir)).toMatchObject([{ user_id: 42, amount_cents: 80_000 }]);
      expect(repeated(readRequestLog(join(dataDir, 'simulator-requests.jsonl')))).toEqual([]);
    },
    60_000,
  );
});

/**
 * Requests that asked for what was recorded before. One call may be asked again when the process died
 * between the provider's answer and the record of it; the next test tells the two apart.
 */
function repeated(requests: readonly { readonly digest: string }[]): string[] {
  const seen = new Map<string, number>();
  for (const { digest } of requests) seen.set(digest, (seen.get(digest) ?? 0) + 1);
  return [...seen].filter(([, count]) => count > 1).map(([digest]) => digest);
}
