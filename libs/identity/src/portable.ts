/** The verification of audit checkpoints without modules of Node, for the console and the CLI (SV-8). */
export { createHeadReader, signedHeadOf } from './tokens/read-signed-head.ts';
