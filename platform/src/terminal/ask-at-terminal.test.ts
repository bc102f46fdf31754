import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { create } from '@bufbuild/protobuf';
import { ApprovalSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import { expect, it, onTestFinished, vi } from 'vitest';
import { askAtTerminal } from './ask-at-terminal.ts';

it('does not prompt after it is closed, so that a stopping platform can exit (SYS-5, PE-2)', async () => {
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(terminal as never);
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const human = askAtTerminal();
  human.close?.();
  // The watch can still deliver an approval after the signal.
  const answer = await human.answer(create(ApprovalSchema), new AbortController().signal);
  expect(answer).toBeUndefined();
  expect(written).not.toHaveBeenCalled();
});

it('delivers SIGINT on Ctrl-C before the prompt ends without an answer (SYS-5, PE-2)', async () => {
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  const screen = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(terminal as never);
  vi.spyOn(process, 'stderr', 'get').mockReturnValue(screen as never);
  const order: string[] = [];
  const onInterrupt = (): void => void order.push('interrupt');
  process.once('SIGINT', onInterrupt);
  onTestFinished(() => void process.off('SIGINT', onInterrupt));
  const answered = askAtTerminal().answer(create(ApprovalSchema), new AbortController().signal);
  await once(screen, 'data');
  terminal.write('\u0003');
  expect(await answered).toBeUndefined();
  order.push('answered');
  expect(order).toEqual(['interrupt', 'answered']);
});
