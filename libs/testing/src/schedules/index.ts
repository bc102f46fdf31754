export { ReplicaSet, type ScheduledReplica, type ScheduledService } from './replica-set.ts';
export {
  runSchedules,
  type Scenario,
  type Schedule,
  type ScheduleOptions,
  schedulesOf,
} from './run-schedules.ts';
