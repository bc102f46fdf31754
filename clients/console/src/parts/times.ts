import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';

const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/** Formats a time in the time zone of the browser. */
export function localTime(time: Timestamp | undefined): string {
  return time === undefined ? '' : FORMAT.format(timestampDate(time));
}

/** The time of day, for events of one run. */
export function localClock(time: Timestamp | undefined): string {
  return time === undefined ? '' : CLOCK.format(timestampDate(time));
}
