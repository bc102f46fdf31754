/** The bus on NATS. Separate from the other exports, because it loads the NATS client. */
export { createNatsBus } from './nats-bus.ts';
export type { NatsBusOptions } from './options.ts';
