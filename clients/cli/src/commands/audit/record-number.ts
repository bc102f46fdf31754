import { InvalidRequestError } from '@writ/kernel';

/**
 * Parses the sequence number of a record.
 * @throws InvalidRequestError INVALID_OPTION naming the option
 */
export function recordNumber(text: string, option: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number;
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `${option} must be a record number, not ${text}.`,
    {
      option,
    },
  );
}
