import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** What is known of a request the moment it arrives; one line of the log file. */
export interface RequestRecord {
  /** ISO 8601. */
  readonly time: string;
  /** From 1, counted over restarts that share a log file. */
  readonly call: number;
  readonly script: string;
  readonly model: string;
  /** Index of the entry that answers; null when none fits. */
  readonly entry: number | null;
  readonly stream: boolean;
  /** SHA-256 of the messages, hex. */
  readonly digest: string;
  /** The `x-request-id` or `idempotency-key` header, null when there is none. */
  readonly request_id: string | null;
  /** The `traceparent` header, null when there is none. */
  readonly traceparent: string | null;
}

/** A request and what became of it. */
export interface LoggedRequest extends RequestRecord {
  /** `open` until the answer is out; `aborted` when the client hung up before that. */
  readonly outcome: 'open' | 'answered' | 'failed' | 'cut' | 'aborted';
}

/**
 * The lines of a request log. A line that a crash tore apart is left out.
 * @param file path; a file that does not exist has no lines
 */
export function readRequestLog(file: string): RequestRecord[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return line === '' ? [] : [JSON.parse(line) as RequestRecord];
      } catch {
        // Only the last line can be torn, and then its request was never answered.
        return [];
      }
    });
}

interface Waiter {
  readonly fits: (request: LoggedRequest) => boolean;
  readonly resolve: (request: LoggedRequest) => void;
  readonly reject: (error: Error) => void;
}

/** Keeps what was asked; with a file, every request is on disk before its answer leaves. */
export class RequestLog {
  readonly #file: string | undefined;
  readonly #used = new Map<string, number>();
  readonly #requests: LoggedRequest[] = [];
  readonly #waiters = new Set<Waiter>();
  #calls = 0;

  constructor(file?: string) {
    this.#file = file;
    for (const record of file === undefined ? [] : readRequestLog(file)) this.#count(record);
  }

  /** How often an entry has answered, in the log file's earlier lives too. */
  used(script: string, entry: number): number {
    return this.#used.get(`${script}/${entry}`) ?? 0;
  }

  /** Writes down a request and returns the function that says what became of it. */
  open(record: Omit<RequestRecord, 'call'>): (outcome: LoggedRequest['outcome']) => void {
    const numbered: RequestRecord = { ...record, call: this.#calls + 1 };
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify(numbered)}\n`);
    this.#count(numbered);
    const index = this.#requests.length;
    const put = (outcome: LoggedRequest['outcome']): void => {
      const request = { ...numbered, outcome };
      this.#requests[index] = request;
      for (const waiter of this.#waiters) {
        if (!waiter.fits(request)) continue;
        this.#waiters.delete(waiter);
        waiter.resolve(request);
      }
    };
    put('open');
    return put;
  }

  /** Everything asked in this life, in order. */
  requests(): readonly LoggedRequest[] {
    return [...this.#requests];
  }

  /** Resolves with the first request that fits, now or later; rejects when the log closes first. */
  until(fits: (request: LoggedRequest) => boolean): Promise<LoggedRequest> {
    const known = this.#requests.find(fits);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#waiters.add({ fits, resolve, reject });
    });
  }

  /** Rejects whoever still waits. */
  close(): void {
    for (const { reject } of this.#waiters) {
      reject(new Error('The simulator closed before such a request came.'));
    }
    this.#waiters.clear();
  }

  #count({ call, script, entry }: RequestRecord): void {
    this.#calls = Math.max(this.#calls, call);
    if (entry !== null) this.#used.set(`${script}/${entry}`, this.used(script, entry) + 1);
  }
}
