import { join } from 'node:path';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { describe, expect, it } from 'vitest';
import { useTestCommands } from './test-commands.ts';

const { platform, writ, detached, pending } = useTestCommands();

describe('writ approvals', () => {
  it('shows an approval, rejects decisions that are not permitted, and applies an edit (SV-5, PE-2)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    const { out } = await writ(['approvals', 'get', id]);
    const text = out.join('\n');
    expect(text).toMatch(/^action: +issue_refund \{"amount_usd":1200,/m);
    expect(text).toMatch(/^you may change: +amount_usd up to 800$/m);
    expect(text).toMatch(/^goal: +Refund order 7\.$/m);
    expect(text).toMatch(
      /^ +1 {2}refund-worker: get_refund_context \{"user_id":42\}: approve, ok\n +\{"user"/m,
    );
    expect(out.slice(-2)).toEqual([
      `writ approvals edit ${id} amount_usd=VALUE`,
      `writ approvals reject ${id}`,
    ]);
    for (const refused of [
      ['approve', id],
      ['edit', id, 'amount_usd=900'],
      ['edit', id, 'reason=No'],
    ]) {
      const answer = await writ(['approvals', ...refused]);
      expect(answer).toMatchObject({ exit: 2, out: [] });
      expect(answer.err.join()).toMatch(/cap of 800 USD|is locked/);
    }
    const edited = await writ(['approvals', 'edit', id, 'amount_usd=700', '--comment', 'In part.']);
    expect(edited.exit).toBe(0);
    expect(edited.out).toContainEqual(expect.stringMatching(/^basis: +approved_with_cap:700$/));
    const watched = await writ(['runs', 'watch', runId]);
    expect(watched.exit).toBe(0);
    expect(watched.out.join('\n')).toMatch(/edited {4}to issue_refund \{"amount_usd":700,/);
    expect((await writ(['approvals', 'reject', id])).err.join()).toContain(
      'was approved by developer',
    );
    expect((await writ(['approvals', 'list', '--run', runId])).err).toEqual(['No approvals.']);
    expect((await writ(['approvals', 'list', '--run', runId, '--all'])).out).toHaveLength(2);
  });

  it('suggests no command to an auditor, who may not decide approvals (SV-5, PE-1)', async () => {
    const id = await pending(await detached('sim-escalate-1200'));
    const apiKeys = openApiKeys({ file: join(platform().dataDir, API_KEYS_FILE) });
    const WRIT_API_KEY = await apiKeys.create({
      subject: 'the-auditor',
      tenant: 'default',
      roles: ['auditor'],
    });
    const { exit, out } = await writ(['approvals', 'get', id], { WRIT_API_KEY });
    expect(exit).toBe(0);
    expect(out.join('\n')).toContain('A decision requires the role approver or admin.');
    expect(out.join('\n')).not.toMatch(/^writ approvals/m);
    await writ(['approvals', 'reject', id]);
  });

  it('rejects an action; `runs watch` of its run exits with code 1 (SV-5, PE-2)', async () => {
    const runId = await detached('sim-escalate-1200');
    const watch = writ(['runs', 'watch', runId]);
    const id = await pending(runId);
    expect((await writ(['approvals', 'reject', id])).exit).toBe(0);
    const { exit, out } = await watch;
    expect(exit).toBe(1);
    expect(out.join('\n')).toContain('human_rejected (human_approval)');
  });

  it('rejects resolve without exactly one outcome, and edit without an exact argument=value (SYS-3)', async () => {
    for (const args of [
      ['resolve', 'apr-0'],
      ['resolve', 'apr-0', '--not-done', '--result', '{}'],
      ['edit', 'apr-0', 'amount_usd'],
      ['edit', 'apr-0', 'amount_usd=9007199254740993'],
    ]) {
      const { exit, err } = await writ(['approvals', ...args]);
      expect(exit).toBe(2);
      expect(err.join()).toMatch(
        /Exactly one of --result and --not-done|A change is argument=value|amount_usd has too many digits/,
      );
    }
  });
});

describe('writ audit list and show', () => {
  it('show who approved what (SV-8, PE-1)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    await writ(['approvals', 'edit', id, 'amount_usd=700']);
    await writ(['runs', 'watch', runId]);
    const list = (...args: string[]) => writ(['audit', 'list', '--run', runId, ...args]);
    const approvals = await list('--kind', 'approval');
    expect(approvals.out[0]).toMatch(/^RECORD +TIME +KIND +RUN +FACTS$/);
    const decided = approvals.out.find((line) => line.includes('state=approved')) ?? '';
    expect(decided).toMatch(
      / approval .*state=approved approver=developer basis=approved_with_cap$/,
    );
    const number = decided.trim().split(' ')[0] ?? '';
    const { out } = await writ(['audit', 'show', number]);
    expect(out).toContainEqual(expect.stringMatching(/^basis: +approved_with_cap$/));
    expect(out).toContainEqual(expect.stringMatching(/^hash: +[0-9a-f]{64}$/));
    expect((await list('--kind', 'halt')).err).toEqual(['No records.']);
    expect(await writ(['audit', 'show', '99999'])).toMatchObject({
      exit: 2,
      err: ['Record 99999 does not exist.'],
    });
  });
});
