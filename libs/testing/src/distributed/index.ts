export { freePorts } from '../processes/free-ports.ts';
export {
  type DistributedOptions,
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  natsPassword,
  startDistributedPlatform,
} from './distributed-platform.ts';
export type { PartName, ReplicaId, ReplicaName, Selector } from './parts.ts';
export type { Replica } from './replica.ts';
export type { Row } from './store-reader.ts';
