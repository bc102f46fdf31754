import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { RpcLimits } from './limits.ts';

type Patience = Required<Pick<RpcLimits, 'connectionIdleMs' | 'connectionPingMs'>>;

/** The HTTP/2 connections of an edge: one that is idle for long, or that nobody hears, is closed. */
export class EdgeSessions {
  readonly #sessions = new Set<ServerHttp2Session>();

  constructor(server: Http2Server, patience: Patience) {
    server.on('session', (session) => {
      this.#sessions.add(session);
      const stop = watch(session, patience);
      session.once('close', () => {
        stop();
        this.#sessions.delete(session);
      });
    });
  }

  /** Closes them as soon as the calls on them are over. */
  close(): void {
    for (const session of this.#sessions) session.close();
  }
}

/** Looks after one connection until the returned function is called. */
function watch(session: ServerHttp2Session, patience: Patience): () => void {
  const { connectionIdleMs, connectionPingMs } = patience;
  let streams = 0;
  let usedAt = performance.now();
  let isAsked = false;
  session.on('stream', (stream) => {
    streams += 1;
    stream.once('close', () => {
      streams -= 1;
      usedAt = performance.now();
    });
  });
  const look = (): void => {
    if (session.destroyed) return;
    if (isAsked) session.destroy();
    else if (streams === 0 && performance.now() - usedAt >= connectionIdleMs) session.close();
    else {
      isAsked = session.ping(() => {
        isAsked = false;
      });
    }
  };
  const timer = setInterval(look, connectionPingMs).unref();
  return () => clearInterval(timer);
}
