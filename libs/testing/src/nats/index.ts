export { describeHookStreams } from './describe-hook-streams.ts';
export { isNatsAvailable, type NatsServer, startNatsServer } from './nats-server.ts';
