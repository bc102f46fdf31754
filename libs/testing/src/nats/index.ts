export { describeHookStreams } from './describe-hook-streams.ts';
export { isNatsAvailable } from './nats-binary.ts';
export { type NatsServer, startNatsServer } from './nats-server.ts';
