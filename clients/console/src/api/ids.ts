/** Returns an idempotency id for one decision of a person; a retry of the same call uses the same id. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
