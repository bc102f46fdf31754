import type { Telemetry } from '@writ/telemetry';
import type { Gate } from './caller.ts';
import type { Route } from './handler.ts';
import type { RpcLimits } from './limits.ts';
import type { Loopback } from './loopback.ts';
import type { ServerTls } from './tls/tls-door.ts';

/** What a server needs. */
export interface RpcServerOptions {
  /** Address to bind, such as `127.0.0.1`. */
  readonly host: string;
  /** Port to bind; 0 takes a free one. */
  readonly port: number;
  /** Variable that sets the port, for whoever has to choose another one. */
  readonly portSetting?: string;
  readonly routes: readonly Route[];
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly limits?: RpcLimits;
  /** Left out, the port speaks cleartext. */
  readonly tls?: ServerTls | undefined;
  /** Where an internal port may speak cleartext; default `loopback`. The edge may anywhere. */
  readonly cleartext?: 'loopback' | 'anywhere' | undefined;
  /** Where clients of the same process find the server without HTTP/2 (SYS-5). */
  readonly loopback?: Loopback | undefined;
}

/** A listening server. */
export interface RpcServer {
  readonly host: string;
  /** The port in use, also when 0 was asked for. */
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
  /** Reports SERVING or NOT_SERVING to health checks, for the server and each of its services. */
  setServing(up: boolean): void;
  /**
   * Drains: reports NOT_SERVING, takes no new calls, ends endless streams at once, lets the other
   * calls finish for `graceMs` (default 10,000), then ends them with UNAVAILABLE. Resolves when all
   * is closed, at most two seconds after the grace; idempotent.
   */
  close(graceMs?: number): Promise<void>;
}
