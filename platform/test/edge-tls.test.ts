import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWritClient } from '@writ/client';
import { generateTestCertificates } from '@writ/testing/certificates';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it } from 'vitest';

it('the platform in one process presents the configured certificate on its edge (SYS-5, SYS-6)', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-edge-'));
  const { ca, certFile, keyFile } = await generateTestCertificates(join(dir, 'tls'));
  const { platform, close } = await startTestPlatform({
    env: {
      WRIT_EDGE_TLS_CERT_FILE: certFile('edge'),
      WRIT_EDGE_TLS_KEY_FILE: keyFile('edge'),
    },
  });
  try {
    const { edgeUrl: baseUrl, apiKey } = platform;
    expect(baseUrl).toMatch(/^https:/);
    const { runs } = createWritClient({ baseUrl, apiKey, ca });
    expect((await runs.listRuns({})).runs).toEqual([]);
    const distrustful = createWritClient({ baseUrl, apiKey });
    await expect(distrustful.runs.listRuns({})).rejects.toThrow(/unable to verify/);
  } finally {
    await close();
    rmSync(dir, { recursive: true, force: true });
  }
});
