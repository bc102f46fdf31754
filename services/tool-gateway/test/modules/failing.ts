/** Throws in createTools. */
export function createTools(): never {
  throw new Error('no key');
}
