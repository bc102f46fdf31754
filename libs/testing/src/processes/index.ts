export { lineFrom } from './line-from.ts';
