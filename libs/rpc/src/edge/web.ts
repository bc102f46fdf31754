import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request over HTTP/1.1, or over HTTP/2 through Node's compatibility API. */
export type WebRequest = IncomingMessage;

/** The response to a {@link WebRequest}. */
export type WebResponse = ServerResponse;

/** Handles requests that are not RPCs, such as a console's files; returns false when it has no response. */
export type WebHook = (request: WebRequest, response: WebResponse) => boolean;
