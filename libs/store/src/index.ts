export {
  type SlotLeasesDatabase,
  slotLeasesTable,
} from './call-slots/slot-leases.ts';
export {
  createSlotShare,
  localSlotShare,
  type SlotShare,
  type SlotShareOptions,
  type SlotUser,
} from './call-slots/slot-share.ts';
export type { CommitObserver, ObservedCommit } from './commit-observer.ts';
export {
  type RecoveryOrder,
  readMarker,
  type StoreMarker,
  updateMarker,
  writeMarker,
} from './marks/marker-file.ts';
export { isBehind } from './marks/refuse-behind.ts';
export { advanceMark, type StoreMark } from './marks/store-mark.ts';
export { type OpenStoreOptions, openStore } from './open-store.ts';
export type { OutboxBacklog } from './outbox/backlog-monitor.ts';
export { nextFlush } from './outbox/flush-interval.ts';
export {
  appendOutbox,
  type OutboxDatabase,
  type OutboxMessage,
  type OutboxTable,
  outboxTable,
  recordedEvents,
} from './outbox/outbox.ts';
export { readBacklog } from './outbox/outbox-queries.ts';
export { createOutboxRelay } from './outbox/outbox-relay.ts';
export type { OutboxRelay, OutboxRelayOptions, RelayFailure } from './outbox/relay-options.ts';
export { DeferredInsert } from './query/deferred-insert.ts';
export { int64 } from './query/int64.ts';
export {
  type PreparedQuery,
  type PreparedWrite,
  pickColumns,
  preparePerColumns,
  prepareQuery,
  prepareWrite,
} from './query/prepared-query.ts';
export { RowCache } from './query/row-cache.ts';
export { afterCommit, beforeCommit, TransactionValue } from './query/transaction-state.ts';
export { createReplicas } from './replicas/create-replicas.ts';
export type { Claim, Replicas } from './replicas/replicas.ts';
export { StorePoller } from './replicas/store-poller.ts';
export type { Migrations } from './schema/migrations.ts';
export {
  Column,
  column,
  type DatabaseOf,
  initialMigration,
  type RowOf,
  type Table,
  type TableOf,
  type TableOptions,
  table,
} from './schema/table.ts';
export { openSharedStore, type SharedStore } from './shared-store.ts';
export { isUniqueViolation, translateSqliteError } from './sqlite/sqlite-errors.ts';
export type { StoreLimits } from './sqlite/sqlite-store.ts';
export {
  COMMIT_DELAY_MS,
  type MarkerLocation,
  type PostgresLimits,
  type Store,
  type StoreDialect,
  type StoreLocation,
  type StoreTransaction,
  type TransactionOptions,
} from './store.ts';
