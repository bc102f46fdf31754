import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadYaml } from '@writ/config';
import { newId } from '@writ/kernel';
import { type Example, loadExample } from '@writ/platform';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const PATIENT = { timeout: 30_000, interval: 50 };
const RUNS = 6;
/** Delay of the model before it answers; longer than the test. */
const HELD_MS = 120_000;

describe.skipIf(!isDistributedPlatformAvailable())('a halt sent to one replica', () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-held-'));
  let platform: DistributedPlatform;

  beforeAll(async () => {
    const example = slowRefundDesk();
    const models = join(folder, 'models.yaml');
    const { value } = loadYaml<{ models: object }>(join(example.folder, 'models.yaml'), {
      type: 'object',
    });
    const held = { template: 'simulated', model: 'sim:held', timeout: `${HELD_MS}ms` };
    writeFileSync(
      models,
      JSON.stringify({ ...value, models: { ...value.models, 'sim-held': held } }),
    );
    platform = await startDistributedPlatform({ example, env: { WRIT_MODELS_FILE: models } });
  });
  afterAll(async () => {
    await platform?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const inFlight = () =>
    platform.rows(
      'execution-meter',
      "select run_id from entries where state in ('reserved', 'sent')",
    );

  it('aborts model calls in flight at another replica, or lists them as in flight (SV-9, SUP-8)', async () => {
    const { runs, control } = platform.client;
    const started = await Promise.all(
      Array.from({ length: RUNS }, () =>
        runs.startRun({
          requestId: newId('req'),
          agent: 'refund-worker',
          goal: 'Refund it.',
          model: 'sim-held',
        }),
      ),
    );
    await vi.waitFor(async () => expect(await inFlight()).toHaveLength(RUNS), PATIENT);
    const halts = await Promise.all(
      started.map(({ run }) =>
        control.halt({
          requestId: newId('req'),
          scope: {
            kind: { case: 'run', value: { tenant: 'default', runId: run?.runId ?? '' } },
          },
          reason: 'Enough.',
        }),
      ),
    );
    // When a halt is acknowledged, each model call of its run was aborted or is listed; the model answers only after
    // two minutes.
    const listed = halts.flatMap(({ halt }) => halt?.inFlight ?? []);
    expect((await inFlight()).length).toBeLessThanOrEqual(listed.length);
    await vi.waitFor(async () => expect(await inFlight()).toEqual([]), PATIENT);
  });
});

/** The refund desk with a model that answers late. */
function slowRefundDesk(): Example {
  const example = loadExample('refund-desk');
  const script = example.scripts.find(({ name }) => name === 'auto-1000');
  const entries = (script?.entries ?? []).map((entry) => ({
    ...entry,
    reply: { ...entry.reply, delay_ms: HELD_MS },
  }));
  return { ...example, scripts: [...example.scripts, { name: 'held', entries }] };
}
