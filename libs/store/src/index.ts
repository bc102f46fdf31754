export type { OutboxBacklog } from './backlog-watch.ts';
export { nextFlush } from './beat.ts';
export type { CommitObserver, ObservedCommit } from './commit-observer.ts';
export { createReplicas } from './create-replicas.ts';
export { int64 } from './int64.ts';
export type { Migrations } from './migrations.ts';
export { type OpenStoreOptions, openStore } from './open-store.ts';
export {
  appendOutbox,
  type OutboxDatabase,
  type OutboxMessage,
  type OutboxTable,
  outboxMigration,
} from './outbox.ts';
export { readBacklog } from './outbox-queries.ts';
export { createOutboxRelay } from './outbox-relay.ts';
export { addPosition, dialectOf } from './portable-schema.ts';
export { type PreparedQuery, pickColumns, prepareQuery } from './prepared-query.ts';
export type { OutboxRelay, OutboxRelayOptions, RelayFailure } from './relay-options.ts';
export type { Claim, Replicas } from './replicas.ts';
export { RowCache } from './row-memory.ts';
export { openSharedStore, type SharedStore } from './shared-store.ts';
export {
  type SlotLeasesDatabase,
  slotLeasesMigration,
} from './slots/slot-leases.ts';
export {
  createSlotShare,
  localSlotShare,
  type SlotShare,
  type SlotShareOptions,
  type SlotUser,
} from './slots/slot-share.ts';
export { isUniqueViolation } from './sqlite-errors.ts';
export type { StoreLimits } from './sqlite-store.ts';
export { StorePoller } from './standing-look.ts';
export type {
  PostgresBounds,
  Store,
  StoreDialect,
  StoreLocation,
  TransactionOptions,
} from './store.ts';
