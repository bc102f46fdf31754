import { describe, expect, it } from 'vitest';
import { START, useTestCommands } from './test-commands.ts';

const { writ, detached, pending } = useTestCommands();

describe('writ usage, budgets, pools, agents and models', () => {
  it('sums usage by dimensions (EM-10, PE-1)', async () => {
    const { out } = await writ([...START, 'sim-auto-1000', '--session', 'ses-usage']);
    const cost = /([\d.]+ USD)$/.exec(out.at(-1) ?? '')?.[1];
    const sums = await writ(['usage', '--by', 'model,day', '--session', 'ses-usage']);
    expect(sums.out[0]).toMatch(/^MODEL +DAY +INPUT TOKENS +OUTPUT TOKENS +TURNS +FAILED +COST$/);
    expect(sums.out[1]).toMatch(/^sim-auto-1000 +\d{4}-\d\d-\d\d +\d+ +\d+ +4 +0 +[\d.]+ USD$/);
    expect(sums.out[1]?.endsWith(` ${cost}`)).toBe(true);
    const later = await writ([
      'usage',
      '--session',
      'ses-usage',
      '--since',
      '2999-01-01',
      '--by',
      'run',
    ]);
    expect(later).toEqual({ exit: 0, out: [], err: ['No usage.'] });
    expect((await writ(['usage', '--by', 'colour'])).err.join()).toContain(
      'Dimensions are agent, run',
    );
    expect((await writ(['usage', '--since', 'yesterday'])).err.join()).toContain('2026-11-01');
  });

  it('shows the remaining budget, and sets and removes caps (EM-3, PE-1)', async () => {
    const { out } = await writ([
      ...START,
      'sim-auto-1000',
      '--max-cost-usd',
      '0.50',
      '--session',
      'ses-caps',
    ]);
    const runId = out[0]?.split(' ')[1] ?? '';
    const levels = await writ(['budgets', 'get', '--run', runId]);
    expect(levels.out[2]).toMatch(/^run +0\.00\d+ USD +0\.00 USD +0\.49\d+ USD /);
    const set = await writ(['budgets', 'set', '--session', 'ses-caps', '--max-turns', '9']);
    expect(set.out[1]).toMatch(/^session .* 4 +0 +5 +developer$/);
    const removed = await writ(['budgets', 'set', '--session', 'ses-caps', '--remove']);
    expect(removed.out[1]).toMatch(/^session .* 4 +0 +no cap$/);
    for (const args of [
      [],
      ['--day', '--month', '--max-turns', '1'],
      ['--day'],
      ['--day', '--remove', '--max-turns', '1'],
    ]) {
      expect(await writ(['budgets', 'set', ...args])).toMatchObject({ exit: 2, out: [] });
    }
    // Invalid combinations: --agent requires --run, and --run cannot be used with --session or --tenant.
    for (const args of [
      ['--run', runId, '--session', 'ses-caps'],
      ['--run', runId, '--tenant', 'default'],
      ['--agent', 'refund-worker'],
      ['--session', 'ses-caps', '--agent', 'refund-worker'],
    ]) {
      const refused = await writ(['budgets', 'get', ...args]);
      expect(refused).toMatchObject({ exit: 2, out: [], err: [expect.stringContaining('--run')] });
    }
  });

  it('shows slots and changes a priority while an agent waits for a person (SB-5, PE-1)', async () => {
    const runId = await detached('sim-escalate-1200');
    const id = await pending(runId);
    const { out } = await writ(['pools', 'get', runId]);
    expect(out[1]).toMatch(/^refund-worker \(\S+\) +(suspended|active) +normal/);
    const raised = await writ(['pools', 'reprioritize', runId, 'high']);
    expect(raised.out[0]).toMatch(/^refund-worker \(\S+\) has the priority high, and is \w+\.$/);
    expect((await writ(['pools', 'get', runId])).out[1]).toMatch(/ high/);
    const unknown = await writ(['pools', 'reprioritize', runId, 'urgent']);
    expect(unknown).toMatchObject({ exit: 2, err: [expect.stringContaining('Allowed choices')] });
    await writ(['approvals', 'reject', id]);
  });

  it('lists agents and models (PE-2)', async () => {
    expect((await writ(['agents'])).out[1]).toMatch(/^refund-worker +\S.*get_refund_context/);
    expect((await writ(['models'])).out.join('\n')).toMatch(
      /^sim-auto-1000 .*0\.40 USD +1\.60 USD$/m,
    );
  });
});
