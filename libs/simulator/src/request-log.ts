import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** A request as recorded on arrival; one line of the log file. */
export interface RequestRecord {
  /** ISO 8601. */
  readonly time: string;
  /** Sequence number from 1, continued across restarts that share a log file. */
  readonly call: number;
  readonly script: string;
  readonly model: string;
  /** Index of the entry that answers; null when none matches. */
  readonly entry: number | null;
  readonly stream: boolean;
  /** SHA-256 of the messages, hex. */
  readonly digest: string;
  /** The `x-request-id` or `idempotency-key` header, null when there is none. */
  readonly request_id: string | null;
  /** The `traceparent` header, null when there is none. */
  readonly traceparent: string | null;
}

/** A request and its outcome. */
export interface LoggedRequest extends RequestRecord {
  /**
   * `open` until the answer is sent; `failed` for an HTTP error or an internal error, `cut` when the simulator dropped
   * the connection, `aborted` when the client disconnected before the end of the answer.
   */
  readonly outcome: 'open' | 'answered' | 'failed' | 'cut' | 'aborted';
}

/**
 * Reads a request log. Skips a line that a crash truncated.
 * @param file path; a missing file is treated as empty
 * @example
 * ```ts
 * import { readRequestLog } from '@writ/simulator';
 *
 * const records = readRequestLog('.writ/simulator-requests.jsonl');
 * for (const { call, model, entry } of records) console.log(call, model, entry);
 * ```
 */
export function readRequestLog(file: string): RequestRecord[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return line === '' ? [] : [JSON.parse(line) as RequestRecord];
      } catch {
        // A crash can truncate only the last line that a process wrote. The request of this line was never answered.
        return [];
      }
    });
}

/** Appends a newline to a last line that a crash truncated, so that the next record starts on a new line. */
function endLastLine(file: string): void {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (text !== '' && !text.endsWith('\n')) appendFileSync(file, '\n');
}

interface Waiter {
  readonly matches: (request: LoggedRequest) => boolean;
  readonly resolve: (request: LoggedRequest) => void;
  readonly reject: (error: Error) => void;
}

/** Records requests; with a file, every request is written before it is answered. */
export class RequestLog {
  readonly #file: string | undefined;
  readonly #used = new Map<string, number>();
  readonly #requests: LoggedRequest[] = [];
  readonly #waiters = new Set<Waiter>();
  #calls = 0;

  constructor(file?: string) {
    this.#file = file;
    if (file === undefined) return;
    for (const record of readRequestLog(file)) this.#count(record);
    endLastLine(file);
  }

  /** How often an entry was selected, including earlier processes with the same log file. */
  used(script: string, entry: number): number {
    return this.#used.get(`${script}/${entry}`) ?? 0;
  }

  /** Records a request and returns the function that records its outcome. */
  open(record: Omit<RequestRecord, 'call'>): (outcome: LoggedRequest['outcome']) => void {
    const numbered: RequestRecord = { ...record, call: this.#calls + 1 };
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify(numbered)}\n`);
    this.#count(numbered);
    const index = this.#requests.length;
    const put = (outcome: LoggedRequest['outcome']): void => {
      const request = { ...numbered, outcome };
      this.#requests[index] = request;
      for (const waiter of this.#waiters) {
        if (!waiter.matches(request)) continue;
        this.#waiters.delete(waiter);
        waiter.resolve(request);
      }
    };
    put('open');
    return put;
  }

  /** Requests since the start, in order. */
  requests(): readonly LoggedRequest[] {
    return [...this.#requests];
  }

  /** Resolves with the first request that matches, past or future; rejects when the log closes first. */
  until(matches: (request: LoggedRequest) => boolean): Promise<LoggedRequest> {
    const known = this.#requests.find(matches);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#waiters.add({ matches, resolve, reject });
    });
  }

  /** Rejects all pending waiters. */
  close(): void {
    for (const { reject } of this.#waiters) {
      reject(new Error('The simulator closed before a matching request arrived.'));
    }
    this.#waiters.clear();
  }

  #count({ call, script, entry }: RequestRecord): void {
    this.#calls = Math.max(this.#calls, call);
    if (entry !== null) this.#used.set(`${script}/${entry}`, this.used(script, entry) + 1);
  }
}
