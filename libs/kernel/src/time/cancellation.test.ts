import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CancellationError } from '../errors/errors.ts';
import { CancellationToken } from './cancellation.ts';

describe('CancellationToken', () => {
  it('keeps the first reason (SUP-6)', () => {
    const token = new CancellationToken();
    expect(() => token.check()).not.toThrow();
    token.cancel('user stopped');
    token.cancel('too late');
    expect(token.isCancelled).toBe(true);
    expect(token.reason).toBe('user stopped');
    expect(() => token.check()).toThrow(new CancellationError('user stopped'));
  });

  it('resolves all waiters, before and after the cancellation (SUP-6)', async () => {
    const token = new CancellationToken();
    const waiting = [token.wait(), token.wait()];
    token.cancel('halt');
    expect(await Promise.all([...waiting, token.wait()])).toEqual(['halt', 'halt', 'halt']);
  });

  it('cancels a child with its parent, not a parent with its child (SUP-6)', () => {
    const parent = new CancellationToken();
    const [first, second] = [parent.child(), parent.child()];
    first.cancel('alone');
    expect(parent.isCancelled || second.isCancelled).toBe(false);
    parent.cancel('all');
    expect([first.reason, second.reason, parent.child().reason]).toEqual(['alone', 'all', 'all']);
  });

  it('does not cancel a detached child (SUP-6)', () => {
    const parent = new CancellationToken();
    const child = parent.child();
    child.detach();
    parent.cancel('all');
    expect(child.isCancelled).toBe(false);
  });

  it('aborts signals created before or after the cancellation (SUP-6)', () => {
    const token = new CancellationToken();
    const before = token.toAbortSignal();
    expect(before.aborted).toBe(false);
    token.cancel('stop');
    expect(before.aborted).toBe(true);
    expect(before.reason).toMatchObject({ kind: 'cancelled', cancelReason: 'stop' });
    const late = new CancellationToken();
    late.cancel('stop');
    expect(late.toAbortSignal().aborted).toBe(true);
  });

  it('is cancelled by an AbortSignal with its reason (SUP-6)', () => {
    const controller = new AbortController();
    const token = CancellationToken.fromAbortSignal(controller.signal);
    const child = token.child();
    controller.abort(new Error('socket closed'));
    expect(child.reason).toBe('socket closed');
    expect(CancellationToken.fromAbortSignal(AbortSignal.abort('bye')).reason).toBe('bye');
    const relay = CancellationToken.fromAbortSignal(token.toAbortSignal());
    expect(relay.reason).toBe('socket closed');
  });

  it('cancels a chain of any depth without recursion (SUP-6)', () => {
    const root = new CancellationToken();
    let leaf = root;
    for (let depth = 0; depth < 20_000; depth += 1) leaf = leaf.child();
    root.cancel('deep');
    expect(leaf.reason).toBe('deep');
  });

  it('cancels exactly the descendants, with the first reason that reached them (SUP-6)', () => {
    const tree = fc.array(fc.nat(), { minLength: 1, maxLength: 20 });
    const cancels = fc.array(fc.nat(), { maxLength: 6 });
    fc.assert(
      fc.property(tree, cancels, (parents, targets) => {
        const tokens = [new CancellationToken()];
        const parentOf: number[] = [-1];
        for (const pick of parents) {
          const parent = pick % tokens.length;
          const child = tokens[parent]?.child();
          if (child !== undefined) tokens.push(child);
          parentOf.push(parent);
        }
        const model: (string | undefined)[] = tokens.map(() => undefined);
        for (const [turn, pick] of targets.entries()) {
          const target = pick % tokens.length;
          tokens[target]?.cancel(`turn ${turn}`);
          for (let index = target; index < tokens.length; index += 1) {
            let at = index;
            while (at > target) at = parentOf[at] ?? -1;
            if (at === target) model[index] ??= `turn ${turn}`;
          }
        }
        expect(tokens.map((token) => token.reason)).toEqual(model);
      }),
    );
  });
});
