import { describe, expect, it } from 'vitest';
import { parseWebhookSecret, webhookHeaders } from './sign.ts';

describe('the signature of a webhook', () => {
  it('matches the published example of Standard Webhooks (PE-2)', () => {
    const key = parseWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    const message = {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      at: new Date(1_614_265_330_000),
      body: '{"test": 2432232314}',
    };
    expect(webhookHeaders(message, key)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  it.each(['', 'whsec_', 'whsec_c2hvcnQ=', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_!!!!'])(
    'rejects the secret "%s" (SYS-3)',
    (text) => expect(parseWebhookSecret(text)).toBeUndefined(),
  );
});
