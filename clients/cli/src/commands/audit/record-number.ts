import { InvalidRequestError } from '@writ/kernel';

/**
 * The place of a record in its chain, as an option gives it.
 * @throws InvalidRequestError INVALID_OPTION naming the option
 */
export function recordNumber(text: string, option: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number;
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `${option} must be the number of a record, not ${text}.`,
    {
      option,
    },
  );
}
