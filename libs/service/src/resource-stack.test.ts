import { expect, it } from 'vitest';
import { ResourceStack } from './resource-stack.ts';

it('closes each resource once in reverse order, even if one fails to close', async () => {
  const closed: string[] = [];
  const stack = new ResourceStack();
  stack.defer(async () => void closed.push('first'));
  stack.defer(() => Promise.reject(new Error('stuck')));
  stack.defer(() => closed.push('last'));
  await expect(stack.close()).rejects.toThrow('stuck');
  expect(closed).toEqual(['last', 'first']);
  await stack.close();
  expect(closed).toHaveLength(2);
});
