/**
 * Verification of audit exports without Node modules, so that `writ audit verify` and the console run the same code
 * (SV-8).
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
