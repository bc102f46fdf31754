import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../../test/fixtures.ts';
import { readTrustFile, TRUST_FILE, writeTrustFile } from './trust-file.ts';

describe('trust file', () => {
  it('stores the address of each service', () => {
    const file = join(tempDir(), TRUST_FILE);
    writeTrustFile(file, { supervisor: '127.0.0.1:50051', 'tool-gateway': '[::1]:50054' });
    writeTrustFile(file, { supervisor: '127.0.0.1:50061', 'tool-gateway': 'gateway.local:50054' });
    expect(readTrustFile(file)).toEqual({
      supervisor: '127.0.0.1:50061',
      'tool-gateway': 'gateway.local:50054',
    });
  });

  it('is reported as missing until the platform writes it', () => {
    expect(() => readTrustFile(join(tempDir(), TRUST_FILE))).toThrow('does not exist yet');
  });

  it('is rejected when invalid, with an error that names the file and the problem (SYS-4)', () => {
    const file = join(tempDir(), TRUST_FILE);
    for (const [text, why] of [
      ['{', 'is not JSON'],
      ['[]', 'is not a JSON object'],
      ['{"unknown-service":"127.0.0.1:1"}', 'names unknown-service, which is not a service'],
      ['{"supervisor":"127.0.0.1"}', 'has no host:port for supervisor'],
    ] as const) {
      writeFileSync(file, text, { mode: 0o600 });
      expect(() => readTrustFile(file)).toThrow(`${file} ${why}`);
    }
    expect(() => writeTrustFile(file, { supervisor: 'here' })).toThrow('is not host:port');
  });
});
