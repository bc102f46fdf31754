import { InvalidArgumentError } from 'commander';

/** Reads a date or time of ISO 8601; without a zone it is UTC. */
export function timeOf(text: string): Date {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const hasZone = /(?:Z|[+-]\d{2}:\d{2})$/i.test(text);
  const time = new Date(isDate || hasZone ? text : `${text}Z`);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError(
    'It must be a date or time such as 2026-11-01 or 2026-11-01T12:00Z.',
  );
}
