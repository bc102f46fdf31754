import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { RpcLimits } from '../limits.ts';

type SessionTimeouts = Required<Pick<RpcLimits, 'connectionIdleMs' | 'connectionPingMs'>>;

/** Tracks the HTTP/2 connections of an edge and closes idle and unresponsive ones. */
export class EdgeSessions {
  readonly #sessions = new Set<ServerHttp2Session>();

  constructor(server: Http2Server, timeouts: SessionTimeouts) {
    server.on('session', (session) => {
      this.#sessions.add(session);
      const stop = watch(session, timeouts);
      session.once('close', () => {
        stop();
        this.#sessions.delete(session);
      });
    });
  }

  /** Closes each connection once its calls have ended. */
  close(): void {
    for (const session of this.#sessions) session.close();
  }
}

/** Watches one connection until the returned function is called. */
function watch(session: ServerHttp2Session, timeouts: SessionTimeouts): () => void {
  const { connectionIdleMs, connectionPingMs } = timeouts;
  let streams = 0;
  let usedAt = performance.now();
  let isPingPending = false;
  session.on('stream', (stream) => {
    streams += 1;
    stream.once('close', () => {
      streams -= 1;
      usedAt = performance.now();
    });
  });
  const check = (): void => {
    if (session.destroyed) return;
    if (isPingPending) session.destroy();
    else if (streams === 0 && performance.now() - usedAt >= connectionIdleMs) session.close();
    else {
      isPingPending = session.ping(() => {
        isPingPending = false;
      });
    }
  };
  const timer = setInterval(check, connectionPingMs).unref();
  return () => clearInterval(timer);
}
