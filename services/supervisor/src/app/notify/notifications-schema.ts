import { about } from '@writ/kernel';
import { NOTIFIED } from '../../domain/notify/notification.ts';
import { ID, object } from '../definitions/schema-values.ts';

const TEXT = { type: 'string', minLength: 1 };
const VARIABLE = {
  type: 'string',
  pattern: '^[A-Z][A-Z0-9_]*$',
  'x-expected': 'the name of an environment variable',
};

const ENDPOINT = object(
  {
    name: about('Name in logs and metrics.', ID),
    url: about(
      'Address that receives a POST: http or https, on port 80 or 443 unless allowed_hosts lists its host and port.',
      TEXT,
    ),
    url_env: about(
      'Environment variable that contains the URL; use it instead of `url` if the URL is a secret.',
      VARIABLE,
    ),
    secret_env: about('Environment variable with the signing secret, `whsec_…`.', VARIABLE),
    secret_file: about('File with the signing secret.', TEXT),
    format: about(
      'Body of the POST: `standard` sends signed JSON as defined by Standard Webhooks, `slack` sends a message for a Slack incoming webhook.',
      { enum: ['standard', 'slack'] },
      { default: 'standard' },
    ),
    events: about(
      'Events that are sent to the endpoint.',
      { type: 'array', items: { enum: [...NOTIFIED] }, minItems: 1, uniqueItems: true },
      { default: 'all' },
    ),
    budget_thresholds: about(
      'Percentages of a cap at which the endpoint is notified; only percentages in WRIT_BUDGET_THRESHOLDS have an effect.',
      { type: 'array', items: { type: 'integer', minimum: 1, maximum: 100 }, minItems: 1 },
      { default: 'all' },
    ),
  },
  ['name'],
);

/** JSON Schema of a notifications file. */
export const NOTIFICATIONS_SCHEMA = object(
  {
    console_url: about('Address of the console, for links in notifications.', TEXT, {
      default: 'no links',
    }),
    allowed_hosts: about(
      'Hosts, as host:port, to which notifications can be sent even in a private network or on a port other than 80 and 443; all other hosts must be on the public internet.',
      { type: 'array', items: { type: 'string', pattern: '^[^\\s/]+:\\d{1,5}$' } },
      { default: 'none' },
    ),
    tenants: about('Endpoints by tenant; `*` applies to tenants that are not named.', {
      type: 'object',
      propertyNames: { pattern: '^([a-z0-9_-]{1,64}|\\*)$' },
      additionalProperties: { type: 'array', items: ENDPOINT },
    }),
  },
  ['tenants'],
);
