/** Cannot be opened. */
export function createTools(): never {
  throw new Error('no key');
}
