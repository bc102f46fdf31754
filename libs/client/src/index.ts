export { createWritClient, type WritClient, type WritClientOptions } from './client.ts';
