/**
 * The floors that a governed step stands on, in one process like the embedded platform: the step's own
 * exchanges, `echoed`, and no more than as many `bare` hops and commits. Each has the same six commits.
 * Answers `{ work, inFlight, forMs }` with how fast that went and what time on a processor it took; the
 * work is a step of either floor, or a `commit` alone, which tells how much of a step is the disk's.
 */
import { createTelemetry } from '@writ/telemetry';
import { measure } from '../../../bench/measure.ts';
import { createBareStep } from './bare.ts';
import { createEchoedStep } from './echoed.ts';
import type { FloorJob } from './step-floor.ts';
import { openFloorStores } from './stores.ts';

const folder = process.env.FLOOR_FOLDER ?? '';
const limit = Number(process.env.FLOOR_LIMIT);
const telemetry = createTelemetry({ service: 'floor', logLevel: 'silent' });
const stores = await openFloorStores(folder);
const works = {
  commit: stores.worker,
  bare: await createBareStep(folder, stores, telemetry),
  echoed: await createEchoedStep({ folder, limit }, stores, telemetry),
} as const satisfies Record<FloorJob['work'], () => Promise<void>>;
process.on('message', ({ work, inFlight, forMs }: FloorJob) => {
  const before = process.cpuUsage();
  void measure(works[work], inFlight, forMs).then((speed) => {
    const { user, system } = process.cpuUsage(before);
    process.send?.({ ...speed, cpuMs: (user + system) / 1_000 / speed.operations });
  });
});
// Whoever started it is gone.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => process.exit());
process.send?.('ready');
