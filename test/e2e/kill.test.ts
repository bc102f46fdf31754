import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { afterEach, describe, expect, it } from 'vitest';
import { PlatformProcess, recordedAnswers, repeatedModelCalls } from './platform-process.ts';

let dataDir: string;
let running: PlatformProcess | undefined;

afterEach(async () => {
  await running?.kill();
  rmSync(dataDir, { recursive: true, force: true });
});

function start(): PlatformProcess {
  running = new PlatformProcess(dataDir, '--human', 'cap:800');
  return running;
}

describe('a platform that is killed during a run', () => {
  it.each([
    ['after the first step', 'read_only_context'],
    ['while an approval is pending', 'high_refund_requires_human'],
    ['once the refund was approved', 'approved_with_cap:800'],
    ['after the refund', 'email_after_refund'],
  ])(
    'completes the run after a restart, %s, with one refund and no repeated model call (RT-1, RT-3, EM-7, TG-5, SYS-5)',
    async (_, text) => {
      dataDir = mkdtempSync(join(tmpdir(), 'writ-kill-'));
      const first = start();
      await first.printed(text);
      await first.kill();
      const recorded = recordedAnswers(dataDir);
      expect(recorded).not.toEqual([]);

      const second = start();
      expect(await second.exited, second.output).toBe(0);
      expect(second.output).toContain('left this run unfinished');
      expect(second.output).toContain('success');
      expect(readLedger(dataDir).refunds).toMatchObject([{ user_id: 42, amount_cents: 80_000 }]);
      expect(repeatedModelCalls(dataDir, recorded)).toEqual([]);
    },
    180_000,
  );
});
