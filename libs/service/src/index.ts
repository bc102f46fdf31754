export { doorVariables } from './door-variables.ts';
export { eventOutlet } from './event-outlet.ts';
export { knownAddresses } from './known-addresses.ts';
export { runService } from './run-service.ts';
export type { Service, ServiceParts } from './service.ts';
export { readStoreLocation } from './store-location.ts';
export { type Sweep, Sweeper } from './sweeper.ts';
