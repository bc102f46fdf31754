/** Entry point of the spawn-budget process. */
import { runService } from '@writ/service';
import { readSpawnBudgetConfig } from './config.ts';
import { createSpawnBudget } from './service.ts';

await runService({ name: 'spawn-budget', read: readSpawnBudgetConfig, create: createSpawnBudget });
