export { waitForLine } from './wait-for-line.ts';
