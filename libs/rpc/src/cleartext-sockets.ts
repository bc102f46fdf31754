import type { Socket } from 'node:net';

/** What an HTTP/2 connection begins with. No HTTP/1 method begins with the same three letters. */
const PREFACE = Buffer.from('PRI');
const FIRST_BYTES_TIMEOUT_MS = 10_000;

/** Where a connection goes, by its first bytes. */
interface Destinations {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

/**
 * Waits for the first bytes of `socket`, puts them back, and hands it to HTTP/2 (prior knowledge) or
 * HTTP/1. A connection that says nothing is closed after ten seconds.
 */
export function sniff(socket: Socket, { http1, http2 }: Destinations): void {
  let first: Buffer = Buffer.alloc(0);
  const drop = (): void => void socket.destroy();
  const look = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    first = Buffer.concat([first, chunk]);
    const known = first.subarray(0, PREFACE.length);
    const isHttp2 = PREFACE.subarray(0, known.length).equals(known);
    if (isHttp2 && known.length < PREFACE.length) return;
    socket.off('readable', look);
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
  socket.on('readable', look);
}
