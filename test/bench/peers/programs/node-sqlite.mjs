// SQLite of Node with the interface that the checkpointer of LangGraph uses, so that nothing has to be compiled.
import { DatabaseSync } from 'node:sqlite';

/** Opens a database with the defaults of better-sqlite3: in WAL mode, a commit does not wait for the disk. */
export function openDatabase(file) {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA synchronous = NORMAL');
  return {
    pragma: (text) => db.exec(`PRAGMA ${text}`),
    exec: (sql) => db.exec(sql),
    prepare: (sql) => {
      const statement = db.prepare(sql);
      // Node does not bind undefined.
      const bound = (values) => values.map((value) => value ?? null);
      return {
        run: (...values) => statement.run(...bound(values)),
        get: (...values) => statement.get(...bound(values)),
        all: (...values) => statement.all(...bound(values)),
      };
    },
    transaction:
      (work) =>
      (...values) => {
        db.exec('BEGIN');
        try {
          const result = work(...values);
          db.exec('COMMIT');
          return result;
        } catch (error) {
          db.exec('ROLLBACK');
          throw error;
        }
      },
  };
}
