const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;

/**
 * Whether JavaScript can represent every number of a JSON text exactly. Other numbers, such as 9007199254740993 or
 * 1e400, would be sent as different values.
 */
export function hasExactNumbers(json: string): boolean {
  const numbers = json.replace(JSON_STRING, '').match(/-?\d[\d.eE+-]*/g) ?? [];
  return numbers.every(
    (text) => significantDigits(text) === significantDigits(Number(text).toExponential()),
  );
}

/** Returns the digits of a number without sign, decimal point, exponent, and zeros at both ends. */
function significantDigits(number: string): string {
  return number
    .replace(/e.*$/i, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '');
}
