/**
 * The baselines of a governed step, in one process like the embedded platform: `echo` exchanges the messages
 * of a step, `bare` makes only as many RPCs and commits. Each has the same six commits. Answers
 * `{ work, inFlight, forMs }` with the speed and the CPU time; `commit` measures a commit alone, which
 * shows the share of the disk.
 */
import { createTelemetry } from '@writ/telemetry';
import { measure } from '../../../bench/measure.ts';
import { createBareStep } from './bare-step.ts';
import { createEchoStep } from './echo-step.ts';
import type { BaselineJob } from './step-baseline.ts';
import { openBaselineStores } from './stores.ts';

const folder = process.env.BASELINE_FOLDER ?? '';
const limit = Number(process.env.BASELINE_LIMIT);
const telemetry = createTelemetry({ service: 'baseline', logLevel: 'silent' });
const stores = await openBaselineStores(folder);
const works = {
  commit: stores.worker,
  bare: await createBareStep(folder, stores, telemetry),
  echo: await createEchoStep({ folder, limit }, stores, telemetry),
} as const satisfies Record<BaselineJob['work'], () => Promise<void>>;
process.on('message', ({ work, inFlight, forMs }: BaselineJob) => {
  const before = process.cpuUsage();
  void measure(works[work], inFlight, forMs).then((speed) => {
    const { user, system } = process.cpuUsage(before);
    process.send?.({ ...speed, cpuMs: (user + system) / 1_000 / speed.operations });
  });
});
// The parent process has exited.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => process.exit());
process.send?.('ready');
