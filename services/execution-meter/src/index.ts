export {
  EXECUTION_METER_DEFAULTS,
  type ExecutionMeterConfig,
  readExecutionMeterConfig,
} from './config.ts';
export { CATALOG_SCHEMA } from './providers/catalog/catalog-schema.ts';
export {
  createExecutionMeter,
  type ExecutionMeterService,
} from './service.ts';
