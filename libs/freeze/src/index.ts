export { createFreezeHandlers, type FreezeParts } from './handlers.ts';
export {
  covers,
  type FreezeCause,
  type FreezeOrder,
  type FreezeScope,
  type FreezeSubject,
  frozenError,
  purges,
  scopeKey,
} from './order.ts';
export {
  type FreezesDatabase,
  freezeRecovered,
  freezesOver,
  freezesTable,
  insertFreeze,
  isPurged,
} from './store.ts';
export { type FreezableCalls, type FrozenCall, watchFreezes } from './watch.ts';
