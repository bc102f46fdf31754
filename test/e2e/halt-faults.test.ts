import type { WritClient } from '@writ/client';
import { HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { HaltHarness } from './halt-harness.ts';

const REASON = 'Refunds look wrong.';

let harness: HaltHarness;
let admin: WritClient;

beforeAll(async () => {
  harness = await HaltHarness.start();
  admin = await harness.client();
});
afterAll(() => harness.close());

describe('a halt', () => {
  it.each([
    [
      'execution-meter',
      'is down',
      () => harness.meter.fail('down'),
      () => harness.meter.fail('none'),
    ],
    [
      'tool-gateway',
      'does not answer',
      () => harness.gateway.fail('blackhole'),
      () => harness.gateway.fail('none'),
    ],
  ])(
    'is in force but not acknowledged while %s %s, and is acknowledged after the recovery (SV-9, SYS-4)',
    async (service, _, stop, start) => {
      const request = {
        requestId: newId('req'),
        scope: { kind: { case: 'tenant', value: 'default' } },
        reason: REASON,
      } as const;
      stop();
      try {
        await expect(admin.control.halt(request)).rejects.toMatchObject({
          kind: 'unavailable',
          reason: 'HALT_PENDING',
          metadata: { waiting_for: service },
        });
        await expect(harness.run(admin, 'auto-1000')).rejects.toMatchObject({
          kind: 'failed_precondition',
          reason: 'HALTED',
          message: `Halted by developer: ${REASON}`,
        });
      } finally {
        start();
      }
      const created = await vi.waitFor(async () => (await admin.control.halt(request)).halt);
      expect(created?.state).toBe(HaltState.IN_FORCE);
      const { halt } = await admin.control.resume({
        requestId: newId('req'),
        haltId: created?.haltId ?? '',
      });
      expect(halt).toMatchObject({ state: HaltState.RESUMED, resumedBy: 'developer' });
    },
  );
});
