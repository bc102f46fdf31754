import { ToolFailure } from '@writ/kernel';
import type { BuiltinTool } from './builtin-tool.ts';

/** Returns the time, in UTC and in a time zone. */
export const now: BuiltinTool = {
  description: 'Tells the present date and time, in UTC and in a time zone.',
  inputSchema: {
    type: 'object',
    properties: {
      time_zone: { type: 'string', description: 'IANA name such as Europe/Lisbon; default UTC.' },
    },
  },
  sideEffect: 'read_only',
  risk: 0,
  timeoutMs: 1_000,
  maxCallsPerAgent: 20,
  // Calls with the same arguments return different results.
  maxRepeats: 20,
  create:
    ({ clock }) =>
    async ({ time_zone: zone = 'UTC' }) => {
      const at = clock.now();
      return {
        utc: at.toISOString(),
        unix_seconds: Math.floor(at.getTime() / 1_000),
        time_zone: zone,
        ...localTime(at, String(zone)),
      };
    },
};

function localTime(at: Date, timeZone: string) {
  try {
    const long = new Intl.DateTimeFormat('en-GB', { timeZone, weekday: 'long' });
    // The Swedish locale formats dates as ISO 8601.
    const local = new Intl.DateTimeFormat('sv-SE', {
      timeZone,
      dateStyle: 'short',
      timeStyle: 'medium',
    });
    return { local: local.format(at), weekday: long.format(at) };
  } catch {
    throw new ToolFailure('time_zone must be an IANA name, such as Europe/Lisbon.');
  }
}
