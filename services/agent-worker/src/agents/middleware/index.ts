export { BUILT_IN_MIDDLEWARE } from './built-in-middleware.ts';
export { middlewareLevels } from './middleware.ts';
export { middlewareRegistry } from './module-middleware.ts';
export { withMiddleware } from './with-middleware.ts';
