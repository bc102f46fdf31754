import { create } from '@bufbuild/protobuf';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { expect, it } from 'vitest';
import { createRunPrinter } from './run-lines.ts';

it('shows that an agent waits for the code version with which it started, and how to fix it (BD-6)', () => {
  const lines: string[] = [];
  const agent = { name: 'clerk', instance: 'clerk-1' };
  const type = HookEventType.AGENT_SUSPENDED;
  const value = create(HookEventSchema, { type, agent, waitingFor: 'code:version_missing:2' });
  createRunPrinter((line) => lines.push(line)).event(
    create(RunEventSchema, { agent, entry: { case: 'hook', value } }),
  );
  expect(lines).toEqual([
    '[clerk]',
    '    waits     Agent clerk-1 waits for the code with which it started: the worker lacks version "2" of its code. Start a worker with the previous code, or cancel the run.',
  ]);
});

it('shows why a model call failed (EM-8)', () => {
  const lines: string[] = [];
  const type = HookEventType.LLM_END;
  const printer = createRunPrinter((line) => lines.push(line));
  for (const status of ['llm_timeout', 'ok']) {
    const value = create(HookEventSchema, { type, status, step: 1 });
    printer.event(create(RunEventSchema, { entry: { case: 'hook', value } }));
  }
  expect(lines).toEqual([
    ' 1  model     0 ms, 0.00 USD so far: llm_timeout',
    ' 1  model     0 ms, 0.00 USD so far',
  ]);
});
