import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { HOOK_STREAMS } from '@writ/bus';
import type { NatsServer } from './nats-server.ts';

const DURABLE = 'supervisor-timeline';

/**
 * What NATS holds for the supervisor's timelines, a line a stream: an event that is nowhere else is
 * perhaps stuck there.
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
        `${name}: ${state.first_seq} to ${state.last_seq}, ${state.messages} kept`,
        `delivered ${consumer.delivered.stream_seq}`,
        `acknowledged ${consumer.ack_floor.stream_seq}`,
        `${consumer.num_pending} to come`,
        `${consumer.num_ack_pending} under way`,
        `${consumer.num_waiting} asked for`,
      ].join(', ');
    });
    return (await Promise.all(lines)).join('\n');
  } finally {
    await connection.close();
  }
}
