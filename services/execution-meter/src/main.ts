/** Runs the execution-meter in its own process. */
import { runService } from '@writ/service';
import { readExecutionMeterConfig } from './config.ts';
import { createExecutionMeter } from './service.ts';

await runService({
  name: 'execution-meter',
  read: readExecutionMeterConfig,
  create: createExecutionMeter,
});
