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
export {
  createOutboxRelay,
  type OutboxRelay,
  type OutboxRelayOptions,
  type RelayFailure,
} from './outbox-relay.ts';
export { addPosition, dialectOf } from './portable-schema.ts';
export { type PreparedQuery, pickColumns, prepareQuery } from './prepared-query.ts';
export { isUniqueViolation } from './sqlite-errors.ts';
export type { StoreLimits } from './sqlite-store.ts';
export type { Store, StoreDialect, StoreLocation, TransactionOptions } from './store.ts';
