import { create } from '@bufbuild/protobuf';
import { CallToolRequestSchema } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { OverloadedError, PermissionDeniedError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { describe, expect, it, vi } from 'vitest';
import type { GatewayContext } from '../../context.ts';
import { recordRefusal } from './presented-call.ts';

describe('a refused attempt that cannot be stored', () => {
  const bug = new TypeError('x is not a function');
  const full = new OverloadedError('STORE_DISK_FULL', 'The disk is full.', {});

  it.each([
    ['with the error if the failure is unexpected', bug, { reason: 'INTERNAL', err: bug }],
    ['with only the reason if the store rejects it', full, { reason: 'STORE_DISK_FULL' }],
  ])('is logged %s (TG-1, BD-1)', async (_, thrown, logged) => {
    const log = { warn: vi.fn(), error: vi.fn() };
    const call = { caller: { service: { name: 'worker', tenants: [] } }, log };
    const transaction = () => Promise.reject(thrown);
    const context = { store: { transaction }, clock: { now: () => new Date(0) } };
    const request = create(CallToolRequestSchema, {
      call: { tenant: 'acme', runId: 'run_1', agentInstance: 'payer-1', callId: 'op-1' },
    });
    const denied = new PermissionDeniedError('WRIT_MISMATCH', 'Other tool.', {});
    const recorded = recordRefusal(
      context as unknown as GatewayContext,
      request,
      call as unknown as CallContext,
      denied,
    );
    await expect(recorded).rejects.toBe(denied);
    const fields = { tenant: 'acme', refusal_id: expect.any(String), ...logged };
    expect(log.error.mock.calls).toEqual([[fields, expect.stringContaining('failed to store')]]);
  });
});
