import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { Gate } from '../caller.ts';
import type { Route } from '../calls/handler.ts';
import type { RpcLimits } from '../limits.ts';
import type { Loopback } from '../loopback/loopback.ts';
import type { ServerTls } from '../tls/tls-acceptor.ts';

/** Options of an RPC server. */
export interface RpcServerOptions {
  /** Address to bind, such as `127.0.0.1`. */
  readonly host: string;
  /** Port to bind; 0 selects a free port. */
  readonly port: number;
  /** Environment variable that sets the port, for error messages. */
  readonly portSetting?: string;
  readonly routes: readonly Route[];
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly limits?: RpcLimits;
  /** TLS settings; the port accepts cleartext if omitted. */
  readonly tls?: ServerTls | undefined;
  /** Where an internal port may accept cleartext; default `loopback`. Not applied to the edge. */
  readonly cleartext?: 'loopback' | 'anywhere' | undefined;
  /**
   * Registry through which clients of the same process call the server without HTTP/2 (SYS-5). Not applied to the edge.
   */
  readonly loopback?: Loopback | undefined;
  /** Clock that provides the time sent with responses (BD-3); default: the system clock. Not applied to the edge. */
  readonly clock?: Clock;
}

/** A listening server. */
export interface RpcServer {
  readonly host: string;
  /** The bound port; if port 0 was requested, the port that the system selected. */
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
  /** Reports SERVING or NOT_SERVING to health checks, for the server and each of its services. */
  setServing(up: boolean): void;
  /**
   * Drains and closes the server: reports NOT_SERVING, rejects new calls, ends endless streams at once,
   * waits up to `graceMs` (default 10,000) for the other calls, then aborts them with UNAVAILABLE.
   * Resolves at most two seconds after the grace period; idempotent.
   */
  close(graceMs?: number): Promise<void>;
}
