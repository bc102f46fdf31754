import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';

const POLICY = resolve(import.meta.dirname, '../../../examples/refund-desk/policy.yaml');

/** A platform with the console, and API keys of persons with one role each. */
export interface ConsolePlatform extends TestPlatform {
  readonly approverKey: string;
  readonly auditorKey: string;
  /** The key of an auditor of another tenant. */
  readonly otherTenantKey: string;
  /** Starts a run that escalates a refund of 1000 or 1200 USD; its approvers may approve up to 1100. */
  startRefund(requestId: string, usd: 1000 | 1200): Promise<string>;
  /** Waits until a run waits for a person, and returns the path of its approval. */
  approvalOf(runId: string): Promise<string>;
}

/** Starts the platform of the refund desk on free ports. */
export async function startConsolePlatform(
  env: Readonly<Record<string, string>> = {},
): Promise<ConsolePlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-console-'));
  const apiKeys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  const keyOf = (role: 'approver' | 'auditor', tenant = 'default') =>
    apiKeys.create({ subject: `the-${role}`, tenant, roles: [role] });
  const approverKey = await keyOf('approver');
  const auditorKey = await keyOf('auditor');
  const otherTenantKey = await keyOf('auditor', 'other');
  const policy = readFileSync(POLICY, 'utf8')
    .replace('auto_refund: { usd: 1000 }', 'auto_refund: { usd: 500 }')
    .replace('max_usd: 800', 'max_usd: 1100');
  const platform = await startTestPlatform({ dataDir, files: { WRIT_POLICY_FILE: policy }, env });
  return {
    ...platform,
    approverKey,
    auditorKey,
    otherTenantKey,
    async startRefund(requestId, usd) {
      const { run } = await platform.client.runs.startRun({
        requestId,
        agent: 'refund-worker',
        goal: `Refund Anna (user_id 42) ${usd} USD for her annual plan.\u001b[2J\u202e`,
        model: usd === 1000 ? 'sim-auto-1000' : 'sim-escalate-1200',
      });
      return run?.runId ?? '';
    },
    async approvalOf(runId) {
      for await (const { approval } of platform.client.approvals.watchApprovals({ runId })) {
        if (approval !== undefined) return `/approvals/${approval.approvalId}`;
      }
      throw new Error(`Run ${runId} does not wait for a person.`);
    },
    async close() {
      await platform.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
