import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';

/**
 * The HMAC-SHA256 of an encoded hook event with the event key of its run. The meter authenticates with it the events
 * that a worker carries to the supervisor (HK-1).
 */
export function eventMac(key: Uint8Array, event: Uint8Array): Uint8Array<ArrayBuffer> {
  // createHmac takes bytes at five times the cost of a key object.
  return new Uint8Array(createHmac('sha256', createSecretKey(key)).update(event).digest());
}

/** Whether `mac` is the {@link eventMac} of `event`; false for an empty key. */
export function isEventMac(key: Uint8Array, event: Uint8Array, mac: Uint8Array): boolean {
  const expected = eventMac(key, event);
  return key.length > 0 && mac.length === expected.length && timingSafeEqual(mac, expected);
}
