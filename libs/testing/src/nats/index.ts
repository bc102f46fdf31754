export { hookStreamState } from './hook-stream-state.ts';
export { natsAtHand } from './nats-binary.ts';
export { type NatsServer, startNatsServer } from './nats-server.ts';
