import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { outboxPublisher } from './outbox-relay-options.ts';

describe('outboxPublisher', () => {
  it('logs once when there is no subscriber and once when there is one again (HK-2)', async () => {
    const lines: string[] = [];
    const telemetry = createTelemetry({
      service: 'spawn-budget',
      logStream: { write: (line) => void lines.push(line) },
    });
    const bus = createInProcessBus({ requiredConsumers: ['timeline'], onError: () => undefined });
    const publisher = outboxPublisher(bus, telemetry);
    expect(publisher.hasSubscribers()).toBe(false);
    publisher.onSubscribersChange(false);
    await bus.subscribe({ subject: '>', durable: 'timeline', handler: async () => undefined });
    expect(publisher.hasSubscribers()).toBe(true);
    publisher.onSubscribersChange(true);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'no event subscriber; events remain in the outbox' },
      { msg: 'event delivery resumed' },
    ]);
    expect(lines.join('')).not.toContain('stack');
    await bus.close();
  });

  it('warns of a large backlog with its size and age (HK-2)', () => {
    const lines: string[] = [];
    const telemetry = createTelemetry({
      service: 'spawn-budget',
      logStream: { write: (line) => void lines.push(line) },
    });
    const bus = createInProcessBus({ onError: () => undefined });
    const { backlog } = outboxPublisher(bus, telemetry);
    expect(backlog.warnAt).toBe(100_000);
    backlog.onBacklog({ count: 100_001, oldestAt: new Date(0) });
    backlog.onBacklog(undefined);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', count: 100_001, oldestAt: '1970-01-01T00:00:00.000Z' },
      { level: 'info' },
    ]);
  });
});
