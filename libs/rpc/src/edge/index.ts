/** The listener for clients outside of the platform. Separate from the other exports, because it loads Connect. */
export type { EdgeOptions } from './edge.ts';
export { createEdge } from './edge.ts';
export type { EventStream } from './event-streams.ts';
export type { StaticFilesOptions } from './static-files.ts';
export { staticFiles } from './static-files.ts';
export { markAuthenticated } from './universal-request.ts';
export type { WebHook, WebRequest, WebResponse } from './web.ts';
