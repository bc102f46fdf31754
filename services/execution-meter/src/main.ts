/** The execution meter in a process of its own. */
import { runService } from '@writ/service';
import { readExecutionMeterConfig } from './config.ts';
import { createExecutionMeter } from './service.ts';

await runService({
  name: 'execution-meter',
  read: readExecutionMeterConfig,
  create: createExecutionMeter,
});
