import { describe, expect, it } from 'vitest';
import { OthersOrders } from './others-orders.ts';

const AFTER_MS = 500;
const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ order_id: id })) as [Order, Order, Order];
type Order = { readonly order_id: string };

const none = () => false;

describe('the due orders that a replica reads (BD-3)', () => {
  it('are all returned by the first read, because a previous process may have left them', () => {
    expect(new OthersOrders(AFTER_MS).ready([a, b], none, 0)).toEqual([a, b]);
  });

  it('are returned after another replica has had the configured time to execute them', () => {
    const others = new OthersOrders(AFTER_MS);
    others.ready([], none, 0);
    expect(others.ready([a], none, 100)).toEqual([]);
    expect(others.ready([a, b], none, 599)).toEqual([]);
    expect(others.ready([a, b], none, 600)).toEqual([a]);
    expect(others.ready([a, b], none, 1_099)).toEqual([a, b]);
  });

  it('are returned at once when this replica placed them', () => {
    const others = new OthersOrders(AFTER_MS);
    others.ready([], none, 0);
    expect(others.ready([a, b], (order) => order === b, 100)).toEqual([b]);
  });

  it('are held back for the configured time after another replica has started to execute them', () => {
    const others = new OthersOrders(AFTER_MS);
    expect(others.ready([a], none, 0)).toEqual([a]);
    others.leave(a, 10);
    expect(others.ready([a], none, 509)).toEqual([]);
    expect(others.ready([a], none, 510)).toEqual([a]);
  });

  it('are held back for the full time when they become due again', () => {
    const others = new OthersOrders(AFTER_MS);
    others.ready([], none, 0);
    others.ready([c], none, 100);
    others.ready([], none, 300);
    expect(others.ready([c], none, 700)).toEqual([]);
  });

  it('are all returned at once when there are no other replicas', () => {
    const others = new OthersOrders(0);
    others.ready([], none, 0);
    expect(others.ready([a], none, 100)).toEqual([a]);
  });
});
