import { type JsonObject, ToolFailure } from '@writ/kernel';

/**
 * Returns a time in UTC and in a time zone.
 * @throws ToolFailure when `timeZone` is not an IANA name
 */
export function describeTime(at: Date, timeZone: string): JsonObject {
  return {
    utc: at.toISOString(),
    unix_seconds: Math.floor(at.getTime() / 1_000),
    time_zone: timeZone,
    ...localTime(at, timeZone),
  };
}

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
