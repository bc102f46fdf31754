import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request over HTTP/1.1, or over HTTP/2 through Node's compatible functions. */
export type WebRequest = IncomingMessage;

/** The response to a {@link WebRequest}. */
export type WebResponse = ServerResponse;

/** Answers what is no RPC, such as a console's files; returns false for what it does not know. */
export type WebHook = (request: WebRequest, response: WebResponse) => boolean;
