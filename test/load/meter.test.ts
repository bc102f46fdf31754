import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answeredThenKilled } from './answered-then-killed.ts';
import { meterCap } from './meter-cap.ts';
import { MeterHarness } from './meter-harness.ts';
import { modelShare } from './model-share.ts';
import { streamAbort } from './stream-abort.ts';

// `npm run load` runs each of these tests at full length.
describe('the meter in its own process', () => {
  let harness: MeterHarness;
  beforeAll(async () => {
    harness = await MeterHarness.start();
  });
  afterAll(() => harness.close());

  it('sends only as many concurrent calls as the cap covers, and leaves nothing reserved (EM-3)', async () => {
    const figures = await meterCap(harness, { calls: 100 });
    expect(figures).toMatchObject({
      'most calls that reached the provider': 50,
      answered: 50,
      refused: 50,
      'still reserved': 0n,
    });
  });

  it('shares the one slot of a model by weight and gives BACKGROUND the idle capacity (SUP-3)', async () => {
    const figures = await modelShare(harness, { calls: 400 });
    expect(figures.CRITICAL + figures.NORMAL).toBeGreaterThan(300);
    expect(Math.abs(figures.ratio / figures.wanted - 1)).toBeLessThanOrEqual(0.15);
    expect(figures['BACKGROUND during saturation']).toBe(0);
    expect(figures['BACKGROUND afterwards']).toBe(10);
  });

  it('closes the connection to the provider when a stream is aborted, and settles an estimate (EM-8, EM-9)', async () => {
    const figures = await streamAbort(harness, { times: 3 });
    expect(figures).toMatchObject({
      'aborted at the provider': 3,
      'estimated turns': 3,
      'still reserved': 0n,
    });
  });

  it('replays the recorded answer when a worker was killed after the provider had answered (EM-7)', async () => {
    const figures = await answeredThenKilled(harness, { times: 2 });
    expect(figures['provider requests']).toBe(2);
    expect(figures['recorded answers']).toBeGreaterThan(0);
  });

  it('keeps unanswered requests on the tab, within the cap, when the meter is killed at random moments (EM-3, EM-7)', async () => {
    const figures = await meterCap(harness, { calls: 80, kills: { rounds: 2, seed: 7 } });
    expect(figures['most calls that reached the provider']).toBeLessThanOrEqual(50);
    expect(figures.attempts).toBe(figures.answered + figures['lost with the meter and charged']);
    expect(figures.answered + figures.refused).toBe(160);
    expect(figures['still reserved']).toBe(0n);
  });
});
