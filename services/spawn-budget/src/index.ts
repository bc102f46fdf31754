export type { SpawnBudgetConfig } from './config.ts';
export { readSpawnBudgetConfig, SPAWN_BUDGET_DEFAULTS } from './config.ts';
export type { SpawnBudgetService } from './service.ts';
export { createSpawnBudget } from './service.ts';
