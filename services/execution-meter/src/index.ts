export {
  EXECUTION_METER_DEFAULTS,
  type ExecutionMeterConfig,
  readExecutionMeterConfig,
} from './config.ts';
export type { Catalog } from './domain/catalog/catalog.ts';
export { CATALOG_SCHEMA } from './providers/catalog/catalog-schema.ts';
export { PriceList } from './providers/catalog/price-list.ts';
export { readCatalog } from './providers/catalog/read-catalog.ts';
export {
  createExecutionMeter,
  type ExecutionMeterService,
} from './service.ts';
