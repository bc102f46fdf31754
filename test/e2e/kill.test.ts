import { rmSync } from 'node:fs';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { afterEach, describe, expect, it } from 'vitest';
import {
  killAfter,
  PlatformProcess,
  recordedAnswers,
  repeatedModelCalls,
} from './platform-process.ts';

const ARGS = ['--human', 'cap:800'];

let dataDir = '';
let running: PlatformProcess | undefined;

afterEach(async () => {
  await running?.kill();
  if (dataDir !== '') rmSync(dataDir, { recursive: true, force: true });
});

describe('a platform that is killed during a run', () => {
  it.each([
    ['after the first step', 'read_only_context'],
    ['while an approval is pending', 'high_refund_requires_human'],
    ['once the refund was approved', 'approved_with_cap:800'],
    ['after the refund', 'email_after_refund'],
  ])(
    'completes the run (killed %s) with one refund and no repeated model call (RT-1, RT-3, EM-7, TG-5, SYS-5)',
    async (_, text) => {
      dataDir = await killAfter(text, ...ARGS);
      const recorded = recordedAnswers(dataDir);
      expect(recorded).not.toEqual([]);

      running = new PlatformProcess(dataDir, ...ARGS);
      const second = running;
      expect(await second.exited, second.output).toBe(0);
      expect(second.output).toContain('left unfinished');
      expect(second.output).toContain('success');
      expect(readLedger(dataDir).refunds).toMatchObject([{ user_id: 42, amount_cents: 80_000 }]);
      expect(repeatedModelCalls(dataDir, recorded)).toEqual([]);
    },
    180_000,
  );
});
