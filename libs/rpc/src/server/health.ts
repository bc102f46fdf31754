import {
  type HealthCheckRequest,
  Health as HealthContract,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { NotFoundError } from '@writ/kernel';
import { type CallContext, route } from '../calls/handler.ts';
import { open, type ServedService } from '../calls/served-service.ts';

/** The health of one server and its services (grpc.health.v1), for every transport (SYS-2). */
export class Health {
  readonly service: ServedService;
  readonly #names: ReadonlySet<string>;
  /** Functions that wake the watches. */
  readonly #watches = new Set<() => void>();
  #isServing = false;
  #isShutDown = false;

  /** @param names full names of the services; the empty name, for the whole server, is added */
  constructor(names: readonly string[]) {
    this.#names = new Set(['', ...names]);
    const { methods } = route(HealthContract, {
      check: async ({ service }) => ({ status: this.#known(service) }),
      list: async () => ({
        statuses: Object.fromEntries(
          [...this.#names].map((name) => [name, { status: this.#status(name) }]),
        ),
      }),
      watch: (request, call) => this.#watch(request, call),
    });
    this.service = open(HealthContract, methods);
  }

  /** Reports SERVING or NOT_SERVING from now on; ignored once shut down. */
  setServing(up: boolean): void {
    if (this.#isShutDown) return;
    this.#isServing = up;
    for (const wake of this.#watches) wake();
  }

  /** Reports NOT_SERVING from now on; later `setServing` calls are ignored. */
  shutDown(): void {
    this.setServing(false);
    this.#isShutDown = true;
  }

  #status(name: string): ServingStatus {
    if (!this.#names.has(name)) return ServingStatus.SERVICE_UNKNOWN;
    return this.#isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }

  #known(name: string): ServingStatus {
    const status = this.#status(name);
    if (status !== ServingStatus.SERVICE_UNKNOWN) return status;
    throw new NotFoundError(
      'SERVICE_UNKNOWN',
      `service: service "${name}" does not exist on this server.`,
      { field: 'service' },
    );
  }

  async *#watch({ service }: HealthCheckRequest, { signal }: CallContext) {
    for (let last: ServingStatus | undefined; !signal.aborted; ) {
      const status = this.#status(service);
      if (status !== last) yield { status };
      last = status;
      if (status === this.#status(service)) await this.#change(signal);
    }
  }

  /**
   * Resolves after a change or an abort. Does not reject on abort: a thousand watches can end at once, and creating an
   * error for each of them would be expensive.
   */
  async #change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal.aborted) return;
    const wake = () => resolve();
    this.#watches.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    signal.removeEventListener('abort', wake);
    this.#watches.delete(wake);
  }
}
