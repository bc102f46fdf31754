// JSON Schemas of values that several keys of the agents and notifications files have.

export const ID = {
  type: 'string',
  pattern: '^[a-z0-9_-]{1,64}$',
  'x-expected': 'a name of a-z, 0-9, _ and -',
};
export const TOOL = {
  type: 'string',
  pattern: '^[a-zA-Z0-9_-]{1,64}$',
  'x-expected': 'a tool name',
};
export const ALIAS = {
  type: 'string',
  pattern: '^[a-zA-Z0-9._:/-]{1,128}$',
  'x-expected': 'a model alias of the catalog',
};
export const ALIAS_PATTERN = {
  type: 'string',
  pattern: '^[a-zA-Z0-9._:/*-]{1,128}$',
  'x-expected': 'a model alias, in which * matches any characters',
};
export const ZERO = 'means none at all; leave it out for unlimited';
export const DURATION = {
  type: 'string',
  pattern: '^(\\d+(\\.\\d+)?(ms|s|m|h|d))+$',
  'x-expected': 'a duration with a unit, such as 30s or 1m30s',
  'x-zero': 'means no time at all; leave it out for unlimited',
};
/** Decimal USD; a string keeps every digit. */
export const USD = {
  type: ['string', 'number'],
  pattern: '^\\d{1,7}(\\.\\d{1,9})?$',
  minimum: 0,
  'x-expected': 'decimal USD such as "1.00"',
  'x-zero': ZERO,
};
export const PRIORITY = { enum: ['background', 'low', 'normal', 'high', 'critical'] };
export const OPTIONS = { type: 'object' };

export function count(minimum = 0) {
  return { type: 'integer', minimum, maximum: 1_000_000_000, 'x-zero': ZERO };
}

export function object(properties: Record<string, unknown>, required: readonly string[] = []) {
  return { type: 'object', additionalProperties: false, properties, required };
}
