import { describe, expect, expectTypeOf, it } from 'vitest';
import { ConfigError, parseDuration, readEnv, variable } from '../index.ts';

const SPEC = {
  port: variable.port('WRIT_PORT', { default: 8080, about: 'the port that clients call' }),
  level: variable.enum('WRIT_LOG_LEVEL', ['debug', 'info'], { default: 'info' }),
  otlp: variable.url('WRIT_OTLP_ENDPOINT', { optional: true }),
  apiKey: variable.string('OPENAI_API_KEY', { secret: true, example: 'sk-…' }),
  timeoutMs: variable.duration('WRIT_TIMEOUT', { default: 30_000, min: 1 }),
  temperature: variable.number('WRIT_TEMPERATURE', { default: 0, min: 0, max: 2 }),
  workers: variable.integer('WRIT_WORKERS', { default: 4, min: 1, max: 64 }),
  tenants: variable.list('WRIT_TENANTS', { default: ['demo'], item: /^[a-z0-9_-]{1,64}$/ }),
  durable: variable.boolean('WRIT_DURABLE', { default: true }),
};

function failure(run: () => unknown): ConfigError {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('Nothing was thrown.');
}

describe('readEnv', () => {
  it('applies defaults, leaves optional variables undefined and treats empty as unset', () => {
    const config = readEnv({ OPENAI_API_KEY: 'sk-1', WRIT_PORT: '  ' }, SPEC);
    expect(config).toEqual({
      port: 8080,
      level: 'info',
      otlp: undefined,
      apiKey: 'sk-1',
      timeoutMs: 30_000,
      temperature: 0,
      workers: 4,
      tenants: ['demo'],
      durable: true,
    });
    expect(Object.isFrozen(config)).toBe(true);
    expectTypeOf(config.level).toEqualTypeOf<'debug' | 'info'>();
    expectTypeOf(config.otlp).toEqualTypeOf<string | undefined>();
    expectTypeOf(config.port).toEqualTypeOf<number>();
  });

  it('reads every type', () => {
    const config = readEnv(
      {
        WRIT_PORT: '0',
        WRIT_LOG_LEVEL: 'debug',
        WRIT_OTLP_ENDPOINT: 'http://127.0.0.1:4317',
        OPENAI_API_KEY: ' sk-1 ',
        WRIT_TIMEOUT: '1m30s',
        WRIT_TEMPERATURE: '0.5',
        WRIT_WORKERS: '64',
        WRIT_TENANTS: 'a, b',
        WRIT_DURABLE: 'Off',
      },
      SPEC,
    );
    expect(config).toEqual({
      port: 0,
      level: 'debug',
      otlp: 'http://127.0.0.1:4317',
      apiKey: 'sk-1',
      timeoutMs: 90_000,
      temperature: 0.5,
      workers: 64,
      tenants: ['a', 'b'],
      durable: false,
    });
  });

  it('reports every problem at once with the variable, the expected format and the fix (SYS-3)', () => {
    const error = failure(() =>
      readEnv(
        {
          WRIT_PORT: '70000',
          WRIT_LOG_LEVEL: 'loud',
          WRIT_OTLP_ENDPOINT: 'user:hunter2@host',
          WRIT_TIMEOUT: '30',
          WRIT_TEMPERATURE: '3',
          WRIT_WORKERS: '1.5',
          WRIT_TENANTS: 'a,,hunter2',
          WRIT_DURABLE: 'maybe',
        },
        SPEC,
      ),
    );
    expect(error.reason).toBe('INVALID_CONFIG');
    expect(error.problems).toEqual([
      'WRIT_PORT must be a port from 0 (any free port) to 65535, not "70000". It is the port that clients call. Set it as WRIT_PORT=8080.',
      'WRIT_LOG_LEVEL must be one of debug, info, not "loud". Set it as WRIT_LOG_LEVEL=debug.',
      'WRIT_OTLP_ENDPOINT must be an absolute URL with http or https; the current value is not. Set it as WRIT_OTLP_ENDPOINT=http://127.0.0.1:4317.',
      'OPENAI_API_KEY is not set. Set it as OPENAI_API_KEY=sk-….',
      'WRIT_TIMEOUT must be a duration with a unit (ms, s, m, h or d) of at least 1 ms, not "30". Set it as WRIT_TIMEOUT=30s.',
      'WRIT_TEMPERATURE must be a number from 0 to 2, not "3". Set it as WRIT_TEMPERATURE=0.',
      'WRIT_WORKERS must be a whole number from 1 to 64, not "1.5". Set it as WRIT_WORKERS=1.',
      'WRIT_TENANTS must be a list separated by commas whose items match /^[a-z0-9_-]{1,64}$/; the current value is not. Set it as WRIT_TENANTS=one,two.',
      'WRIT_DURABLE must be true or false, not "maybe". Set it as WRIT_DURABLE=true.',
    ]);
    expect(error.message).toContain('The environment has 9 problems:\n- WRIT_PORT');
  });

  it('excludes secrets from messages', () => {
    const spec = {
      key: variable.string('WRIT_KEY', { secret: true, pattern: /^sk-/ }),
      pin: variable.integer('WRIT_PIN', { secret: true }),
    };
    const error = failure(() => readEnv({ WRIT_KEY: 'hunter2', WRIT_PIN: 'hunter2' }, spec));
    expect(error.problems).toHaveLength(2);
    expect(error.message).not.toContain('hunter2');
  });
});

describe('parseDuration', () => {
  it('parses units and sums of units', () => {
    expect(
      ['250ms', '30s', '1.5h', '2d', '1m30s', '0s'].map((text) => parseDuration(text)),
    ).toEqual([250, 30_000, 5_400_000, 172_800_000, 90_000, 0]);
  });

  it('rejects a number without a unit and names the field (SYS-3)', () => {
    for (const bad of ['30', '', 's', '-1s', '1 s', '1s2']) {
      expect(() => parseDuration(bad, 'ask_timeout')).toThrow(
        expect.objectContaining({ reason: 'INVALID_DURATION', metadata: { field: 'ask_timeout' } }),
      );
    }
  });
});
