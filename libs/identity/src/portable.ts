/** Verification of audit checkpoints without Node.js modules, for the console and the CLI (SV-8). */
export { createHeadReader, signedHeadOf } from './tokens/read-signed-head.ts';
