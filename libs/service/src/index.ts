export type { BackgroundWork } from './background-work.ts';
export { createDataFolder, type DataFolderLock, lockDataFolder } from './data-folder.ts';
export { defineService } from './define-service.ts';
export { refusedAddress } from './egress/address-rules.ts';
export { fetchLongCall } from './egress/fetch-long-call.ts';
export { guardedRequest } from './egress/guarded-request.ts';
export type { Resolve } from './egress/resolve-name.ts';
export {
  type EgressAllowance,
  EgressRefusal,
  readRedirect,
  readTarget,
} from './egress/target-rules.ts';
export { handlerFailures } from './events/bus-failures.ts';
export { type CountAtCommit, countAtCommit } from './events/count-at-commit.ts';
export { openObserverBus } from './events/open-bus.ts';
export { tracedHandlers } from './events/traced-events.ts';
export { runService } from './run-service.ts';
export type { Service, ServiceParts } from './service.ts';
export type { ServiceHost } from './service-host.ts';
export { type NatsAccess, readNatsAccess, readProcessSettings } from './settings/config.ts';
export { listenerVariables } from './settings/listener-variables.ts';
export { type PeerSettings, readPeerSettings } from './settings/peer-settings.ts';
export { readStoreLocation } from './settings/store-location.ts';
export { readTelemetrySettings, type TelemetrySettings } from './settings/telemetry-settings.ts';
export {
  type InspectedStore,
  inspectStores,
  orderRecovery,
  type RecoveryParts,
  type StoreFinding,
} from './stores/recover-stores.ts';
export { type Sweep, Sweeper } from './sweeper.ts';
