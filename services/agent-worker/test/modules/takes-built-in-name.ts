import { defineMiddleware } from '@writ/kernel';

export const middleware = [
  defineMiddleware({ name: 'cache', chat: () => ({ process: (context, next) => next(context) }) }),
];
export const strategies = ['not a definition'];
