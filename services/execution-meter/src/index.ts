export {
  EXECUTION_METER_DEFAULTS,
  type ExecutionMeterConfig,
  readExecutionMeterConfig,
} from './config.ts';
export {
  createExecutionMeter,
  type ExecutionMeterService,
} from './service.ts';
