import type { Telemetry } from '@writ/telemetry';
import type { Gate } from './caller.ts';
import type { Route } from './handler.ts';

/** How much one server accepts; over a limit the caller gets RESOURCE_EXHAUSTED. */
export interface RpcLimits {
  /** Largest request or response message, bytes. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** Most concurrent calls on one connection. Default 1,000. */
  readonly maxConcurrentStreams?: number;
  /** Most memory that one HTTP/2 connection may hold, MB. Default 64. */
  readonly maxSessionMemoryMb?: number;
  /** Longest a unary call may take whatever its client allows, ms. Default 60,000; streams have none. */
  readonly maxUnaryMs?: number;
}

/** What a server needs. */
export interface RpcServerOptions {
  /** Address to bind, such as `127.0.0.1`. */
  readonly host: string;
  /** Port to bind; 0 takes a free one. */
  readonly port: number;
  readonly routes: readonly Route[];
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly limits?: RpcLimits;
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
   * Drains: reports NOT_SERVING, takes no new calls, lets those in flight finish for `graceMs`
   * (default 10,000), then ends them with UNAVAILABLE. Resolves when all is closed; idempotent.
   */
  close(graceMs?: number): Promise<void>;
}
