import { describe, expect, it } from 'vitest';
import { readProcessSettings } from './config.ts';

describe('readProcessSettings', () => {
  it('defaults to services on loopback (SYS-5)', () => {
    const { addressOf, telemetry } = readProcessSettings({
      WRIT_TOOL_GATEWAY_ADDRESS: 'gateway.example:443',
    });
    expect(addressOf('supervisor')).toBe('127.0.0.1:50051');
    expect(addressOf('tool-gateway')).toBe('gateway.example:443');
    expect(telemetry).toEqual({ logLevel: 'info', sampleRatio: 1 });
  });

  it('accepts a list of replica addresses (SYS-5)', () => {
    const address = 'meter-0.example:50053, meter-1.example:50053';
    const { addressOf } = readProcessSettings({ WRIT_EXECUTION_METER_ADDRESS: address });
    expect(addressOf('execution-meter')).toBe(address);
  });

  it('reads the pools of workers by tenant (SYS-6)', () => {
    expect(readProcessSettings({}).workerPools).toEqual([]);
    const { workerPools } = readProcessSettings({
      WRIT_AGENT_WORKER_POOLS: 'acme=a-0:50055, rivals=b:50055, acme=a-1:50055, beta=b:50055',
    });
    expect(workerPools).toEqual([
      { address: 'a-0:50055, a-1:50055', tenants: ['acme'] },
      { address: 'b:50055', tenants: ['rivals', 'beta'] },
    ]);
    expect(() => readProcessSettings({ WRIT_AGENT_WORKER_POOLS: 'acme' })).toThrow(
      /WRIT_AGENT_WORKER_POOLS/,
    );
  });

  it('uses NATS only if a server is configured (HK-2, SYS-5)', () => {
    expect(readProcessSettings({}).nats).toBeUndefined();
    const { nats } = readProcessSettings({
      WRIT_NATS_URL: 'nats://a:4222,nats://b:4222',
      WRIT_NATS_PASSWORD: 'secret',
    });
    expect(nats).toMatchObject({
      servers: ['nats://a:4222', 'nats://b:4222'],
      user: undefined,
      password: 'secret',
    });
  });

  it('rejects a NATS user without a password, and a client certificate or key without the other (SYS-3, SYS-4)', () => {
    const WRIT_NATS_URL = 'nats://a:4222';
    expect(() => readProcessSettings({ WRIT_NATS_URL, WRIT_NATS_USER: 'gateway-1' })).toThrow(
      'WRIT_NATS_USER is set without WRIT_NATS_PASSWORD; set the password of the user.',
    );
    for (const name of ['WRIT_NATS_CERT_FILE', 'WRIT_NATS_KEY_FILE'])
      expect(() => readProcessSettings({ WRIT_NATS_URL, [name]: 'a' })).toThrow(
        'WRIT_NATS_CERT_FILE and WRIT_NATS_KEY_FILE must be set together; set both or none.',
      );
  });

  it('uses TLS if all three files are set, and rejects two of the three (SYS-4, SYS-6)', () => {
    const files = { WRIT_TLS_CERT_FILE: 'a', WRIT_TLS_KEY_FILE: 'b', WRIT_TLS_CA_FILE: 'c' };
    expect(readProcessSettings(files).tls).toEqual({ certFile: 'a', keyFile: 'b', caFile: 'c' });
    expect(readProcessSettings({})).toMatchObject({ cleartext: 'loopback' });
    expect(readProcessSettings({}).tls).toBeUndefined();
    expect(readProcessSettings({ WRIT_ALLOW_CLEARTEXT: 'true' }).cleartext).toBe('anywhere');
    for (const name of Object.keys(files))
      expect(() => readProcessSettings({ ...files, [name]: undefined })).toThrow(
        /must be set together/,
      );
  });

  it('names a malformed variable (SYS-3)', () => {
    expect(() => readProcessSettings({ WRIT_AGENT_WORKER_ADDRESS: 'nowhere' })).toThrow(
      /WRIT_AGENT_WORKER_ADDRESS/,
    );
  });
});
