/**
 * Formats and verifies the lines of an audit export without modules of Node.js: the console verifies in the browser with
 * the same code as `writ audit verify` (SV-8).
 */
export { CHAIN_START } from './chain-link.ts';
export { formatLine, parseLine } from './export-line.ts';
export { exportedLine } from './line-of-entry.ts';
export { summaryOf } from './summary.ts';
export type {
  ExportCrypto,
  InvalidExport,
  ReadHead,
  SignedHead,
  ValidExport,
} from './verification.ts';
export { verifyLines } from './verify-lines.ts';
