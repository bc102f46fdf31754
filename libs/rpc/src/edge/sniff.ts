import type { Socket } from 'node:net';

/** The first bytes of an HTTP/2 connection. No HTTP/1 method begins with the same three letters. */
const PREFACE = Buffer.from('PRI');
const FIRST_BYTES_TIMEOUT_MS = 10_000;

/** The handlers of a connection by protocol. */
interface Destinations {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

/**
 * Reads the first bytes of `socket`, unshifts them, and passes the socket to HTTP/2 (prior knowledge) or HTTP/1. A
 * connection that sends nothing is closed after ten seconds.
 */
export function sniff(socket: Socket, { http1, http2 }: Destinations): void {
  let first: Buffer = Buffer.alloc(0);
  const drop = (): void => void socket.destroy();
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    first = Buffer.concat([first, chunk]);
    const start = first.subarray(0, PREFACE.length);
    const isHttp2 = PREFACE.subarray(0, start.length).equals(start);
    if (isHttp2 && start.length < PREFACE.length) return;
    socket.off('readable', onReadable);
    socket.off('error', drop);
    socket.off('timeout', drop);
    socket.setTimeout(0);
    socket.unshift(first);
    if (isHttp2) http2(socket);
    else http1(socket);
  };
  socket.setTimeout(FIRST_BYTES_TIMEOUT_MS);
  socket.on('timeout', drop);
  socket.on('error', drop);
  socket.on('readable', onReadable);
}
