import { UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { policyCheck } from './policy-check.ts';

const POLICY = {
  file: 'policy.yaml',
  text: `policy: desk
rules:
  - id: large
    match: { tool: pay }
    when: args.amout > 10.0
    decide: escalate
    reason: large
`,
};
const PAY = { type: 'object', properties: { amount: { type: 'number' } } } as const;

describe('the check of a policy against the tools', () => {
  it('waits for the gateway, then names a mistake by file, line and column, once (SV-3)', async () => {
    const lines: string[] = [];
    const { log } = createTelemetry({
      service: 'supervisor',
      logStream: { write: (line: string) => lines.push(line) },
    });
    let isUp = false;
    const check = policyCheck(
      POLICY,
      {
        async toolSchemas() {
          if (isUp) return { pay: PAY };
          throw new UnavailableError('TOOLS_UNKNOWN', 'Away.');
        },
      },
      log,
    );
    await check();
    expect(lines).toEqual([]);
    isUp = true;
    await check();
    await check();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('policy.yaml:5:');
    expect(lines[0]).toContain('amout');
  });
});
