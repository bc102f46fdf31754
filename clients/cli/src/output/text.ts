import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { formatUsd } from '@writ/kernel';

/** A time in UTC, to the second; empty for none. */
export function timeText(time: Timestamp | undefined): string {
  if (time === undefined) return '';
  return `${timestampDate(time).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Money in USD with its unit. */
export function usdText(nanoUsd: bigint): string {
  return `${formatUsd(nanoUsd)} USD`;
}
