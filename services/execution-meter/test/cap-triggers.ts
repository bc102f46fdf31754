import { sql } from 'kysely';
import type { MeterStore } from '../src/store/meter-store.ts';

/**
 * Rejects a statement that raises the settled and reserved tokens of a level above its token cap, unless the statement
 * also raises the debt.
 */
const POSTGRES_BOOKING = `declare
    level_id text := split_part(new.id, '#', 1);
    cap bigint := coalesce((select cap_tokens from balances where id = level_id),
      (select cap_tokens from balances where id = 'caps:day:' || substr(split_part(level_id, '/', 1), 5) and level_id like 'day:%'));
  begin
    if cap is null then return null; end if;
    if tg_op = 'UPDATE' then
      if new.used_tokens + new.reserved_tokens <= old.used_tokens + old.reserved_tokens
        or new.debt_tokens > old.debt_tokens then return null; end if;
    end if;
    if (select sum(used_tokens + reserved_tokens) from balances where id >= level_id and id < level_id || '$') > cap
      then raise exception 'cap of % exceeded', level_id; end if;
    return null;
  end`;

/**
 * Rejects a commit after which a slice exceeds its grant, or all slices together exceed the cap. The sum contains the
 * greater of the grant and the committed bookings of each slice, because other transactions can have uncommitted
 * bookings within their grants.
 */
const POSTGRES_COMMIT = `declare
    level_id text := split_part(to_jsonb(new) ->> tg_argv[0], '#', 1);
    cap bigint := nullif(split_part((select terms from escrows where level = level_id), '/', 1), '')::bigint;
    total bigint;
    is_above boolean;
  begin
    if cap is null then return null; end if;
    select sum(greatest(coalesce(booked, 0), coalesce(tokens, 0))), bool_or(booked > tokens) into total, is_above
      from (select coalesce(nullif(split_part(id, '#', 2), ''), '0')::integer as slice, used_tokens + reserved_tokens as booked
            from balances where id >= level_id and id < level_id || '$') as slices
      full join (select slice, tokens from grants where level = level_id) as granted using (slice);
    if total > cap or is_above then raise exception 'grants of % exceeded', level_id; end if;
    return null;
  end`;

/**
 * Makes the database reject bookings that raise a level above its cap, and grants that together exceed the cap (EM-3).
 */
export async function rejectExceededCaps(store: MeterStore): Promise<void> {
  if (store.dialect === 'sqlite') return await rejectExceededCapsOnSqlite(store);
  const triggers = `
    create function within_cap() returns trigger language plpgsql as ${quoted(POSTGRES_BOOKING)};
    create trigger within_cap after insert or update on balances for each row execute function within_cap();
    create function within_grants() returns trigger language plpgsql as ${quoted(POSTGRES_COMMIT)};
    create constraint trigger within_grants after insert or update on balances
      deferrable initially deferred for each row execute function within_grants('id');
    create constraint trigger within_grants after insert or update on grants
      deferrable initially deferred for each row execute function within_grants('level')`;
  await store.transaction(async (trx) => {
    for (const text of triggers.split(/;\n {4}(?=create )/)) await sql.raw(text).execute(trx);
  });
}

function quoted(body: string): string {
  return `$body$ ${body} $body$`;
}

/** On SQLite, the triggers check statements only, because SQLite has no deferred triggers. */
async function rejectExceededCapsOnSqlite(store: MeterStore): Promise<void> {
  const level = `case instr(new.id, '#') when 0 then new.id else substr(new.id, 1, instr(new.id, '#') - 1) end`;
  const booked = `(select sum(used_tokens + reserved_tokens) from balances
    where id >= ${level} and id < ${level} || '$')`;
  const cap = `coalesce((select cap_tokens from balances where id = ${level}),
    (select cap_tokens from balances where id = 'caps:' || substr(${level}, 1, instr(${level}, '/') - 1)))`;
  const raised = {
    insert: 'new.used_tokens + new.reserved_tokens > 0',
    update: `new.used_tokens + new.reserved_tokens > old.used_tokens + old.reserved_tokens
      and new.debt_tokens <= old.debt_tokens`,
  };
  await store.transaction(async (trx) => {
    for (const [event, isRaised] of Object.entries(raised)) {
      const text = `create trigger within_cap_on_${event} after ${event} on balances
        when ${isRaised} and ${booked} > ${cap} begin select raise(abort, 'a cap is exceeded'); end`;
      await sql.raw(text).execute(trx);
    }
  });
}

/**
 * Returns the grants of a tenant that together exceed the cap of their level, or do not cover the bookings of their
 * slice.
 */
export async function invalidGrants(store: MeterStore, tenant: string): Promise<unknown[]> {
  const { rows } = await sql<{ readonly level: string }>`
    select g.level, g.slice, g.tokens, e.terms, b.used_tokens, b.reserved_tokens,
      (select sum(tokens) from grants o where o.level = g.level) as granted
    from grants g join escrows e on e.level = g.level
    left join balances b on b.id = g.level || case g.slice when 0 then '' else '#' || g.slice end
    where g.level >= ${`session:${tenant}/`} and g.level < ${`session:${tenant}0`}
      or g.level >= ${`day:${tenant}/`} and g.level < ${`day:${tenant}0`}`.execute(store.db);
  return rows.filter((row) => {
    const { tokens, terms, granted, used_tokens, reserved_tokens } = row as unknown as Record<
      'tokens' | 'terms' | 'granted' | 'used_tokens' | 'reserved_tokens',
      string | bigint | number | null
    >;
    const cap = BigInt(String(terms).split('/')[0] ?? '');
    const booked = BigInt(used_tokens ?? 0) + BigInt(reserved_tokens ?? 0);
    return BigInt(granted ?? 0) > cap || booked > BigInt(tokens ?? 0);
  });
}
