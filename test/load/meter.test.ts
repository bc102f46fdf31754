import { afterAll, beforeAll, describe, it } from 'vitest';
import { answeredThenKilled } from './answered-then-killed.ts';
import { meterCap } from './meter-cap.ts';
import { MeterStage } from './meter-stage.ts';
import { modelShare } from './model-share.ts';
import { streamAbort } from './stream-abort.ts';

// Each proof checks itself; `npm run load` runs them at full length.
describe('the meter in a process of its own', () => {
  let stage: MeterStage;
  beforeAll(async () => {
    stage = await MeterStage.start();
  });
  afterAll(() => stage.close());

  it('lets no more concurrent calls reach the provider than the cap pays, and reserves nothing at the end (EM-3)', async () => {
    await meterCap(stage, { calls: 100 });
  });

  it('gives a model’s one slot by weight, and BACKGROUND what is left over (SUP-3)', async () => {
    await modelShare(stage, { forMs: 1_000 });
  });

  it('closes the provider’s connection when a stream is aborted, and settles an estimate (EM-8, EM-9)', async () => {
    await streamAbort(stage, { times: 3 });
  });

  it('answers from the record when a worker was killed after the provider had answered (EM-7)', async () => {
    await answeredThenKilled(stage, { times: 2 });
  });

  it('keeps what was sent and never answered on the tab when it is killed at random moments, within the cap (EM-3, EM-7)', async () => {
    await meterCap(stage, { calls: 80, kills: { rounds: 2, seed: 7 } });
  });
});
