import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { HOOK_STREAMS } from '@writ/bus';
import type { NatsServer } from './nats-server.ts';

const DURABLE = 'supervisor-timeline';

/**
 * Describes the hook event streams and the supervisor's timeline consumer, one line per stream, to show
 * where a missing event is stuck.
 */
export async function describeHookStreams(
  { address }: NatsServer,
  password: string,
): Promise<string> {
  const user = 'supervisor';
  const connection = await connect({
    servers: address,
    user,
    pass: password,
    inboxPrefix: `_INBOX.${user}`,
  });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const lines = HOOK_STREAMS.map(async ({ name }) => {
      const { state } = await manager.streams.info(name);
      const consumer = await manager.consumers.info(name, DURABLE);
      return [
        `${name}: ${state.first_seq} to ${state.last_seq}, ${state.messages} stored`,
        `delivered ${consumer.delivered.stream_seq}`,
        `acknowledged ${consumer.ack_floor.stream_seq}`,
        `${consumer.num_pending} pending`,
        `${consumer.num_ack_pending} in flight`,
        `${consumer.num_waiting} pull requests`,
      ].join(', ');
    });
    return (await Promise.all(lines)).join('\n');
  } finally {
    await connection.close();
  }
}
