import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { eventOutlet } from './event-outlet.ts';

describe('where the events of a service go', () => {
  it('is said in one line when nobody takes them, and in one when somebody does (HK-2)', async () => {
    const lines: string[] = [];
    const telemetry = createTelemetry({
      service: 'spawn-budget',
      logStream: { write: (line) => void lines.push(line) },
    });
    const bus = createInProcessBus({ expects: ['timeline'], onError: () => undefined });
    const outlet = eventOutlet(bus, telemetry);
    expect(outlet.attended()).toBe(false);
    outlet.onAttendance(false);
    await bus.subscribe({ subject: '>', durable: 'timeline', handler: async () => undefined });
    expect(outlet.attended()).toBe(true);
    outlet.onAttendance(true);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'Nobody takes events here now; they wait in the outbox.' },
      { msg: 'Events are taken again.' },
    ]);
    expect(lines.join('')).not.toContain('stack');
    await bus.close();
  });
});
