export { type BackgroundWork, defineService, type ServiceHost } from './define-service.ts';
export { tracedHandlers } from './events/traced-events.ts';
export { runService } from './run-service.ts';
export type { Service, ServiceParts } from './service.ts';
export { listenerVariables } from './settings/listener-variables.ts';
export { type PeerSettings, readPeerSettings } from './settings/peer-settings.ts';
export { readStoreLocation } from './settings/store-location.ts';
export { readTelemetrySettings, type TelemetrySettings } from './settings/telemetry-settings.ts';
export { type Sweep, Sweeper } from './sweeper.ts';
