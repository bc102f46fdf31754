import { column, table } from '@writ/store';

/** One row for each order, which the engine executes until it is done. */
export const orders = table('orders', {
  columns: {
    order_id: column.text(),
    kind: column.text(),
    tenant: column.text(),
    run_id: column.text(),
    /** JSON, by kind. */
    payload: column.text(),
    /** The step at which the next attempt begins. */
    step: column.text(),
    state: column.text<'open' | 'done' | 'failed'>(),
    /** Failures since this step was recorded. */
    attempts: column.integer(),
    next_attempt_at: column.timestamp(),
    /** Reason of the last failure; never content. */
    last_error: column.text().nullable(),
    created_at: column.timestamp(),
  },
  primaryKey: ['order_id'],
  indexes: {
    orders_open: { on: ['next_attempt_at'], where: ['state', '=', 'open'] },
  },
});

/** One row for each mutating request whose request_id is not stored in another table. */
export const requests = table('requests', {
  columns: {
    tenant: column.text(),
    subject: column.text(),
    /**
     * Full name of the RPC. SetCaps has a second row with the suffix `/enforced` after the meter has confirmed the
     * caps. For a run that a lifted halt resumed, the method is `resume`, `subject` is the id of the halt, and
     * `request_id` is the id of the run.
     */
    method: column.text(),
    request_id: column.text(),
    digest: column.text(),
    recorded_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'subject', 'method', 'request_id'],
});

/** One row for each audited refusal, so that it is audited once (TG-1). */
export const refusals = table('refusals', {
  columns: {
    tenant: column.text(),
    refusal_id: column.text(),
    recorded_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'refusal_id'],
});
