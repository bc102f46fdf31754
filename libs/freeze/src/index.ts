export { createFreezeHandlers, type FreezeParts } from './handlers.ts';
export { type FreezeCause, type FreezeOrder, frozenError, purges } from './order.ts';
export {
  type FreezeInForce,
  type FreezesDatabase,
  freezeRecovered,
  freezesOver,
  freezesTable,
  insertFreeze,
  isPurged,
} from './store.ts';
export { type FreezableCalls, type FrozenCall, watchFreezes } from './watch.ts';
