/** Returns a new request id: the idempotency id of one command of a person. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
