import { createHmac } from 'node:crypto';

/** Prefix of a secret in text form. */
const PREFIX = 'whsec_';
/** Sizes of a key, in bytes, as Standard Webhooks requires. */
const MIN_BYTES = 24;
const MAX_BYTES = 64;

/**
 * Parses a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in Base64. Returns undefined for anything else.
 */
export function parseWebhookSecret(text: string): Buffer | undefined {
  const encoded = text.trim().startsWith(PREFIX) ? text.trim().slice(PREFIX.length) : '';
  const key = Buffer.from(encoded, 'base64');
  const isCanonical = key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  return isCanonical && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

/**
 * Returns the headers of a webhook according to Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and
 * `webhook-signature`, HMAC-SHA-256 over id, timestamp and content. Without a key, `webhook-signature` is omitted.
 */
export function webhookHeaders(
  message: { readonly id: string; readonly at: Date; readonly body: string },
  key: Buffer | undefined,
): Record<string, string> {
  const { id, at, body } = message;
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (key === undefined) return headers;
  const signed = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...headers, 'webhook-signature': `v1,${signed}` };
}
