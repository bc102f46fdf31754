export { linkHash } from './chain.ts';
export { CHAIN_START } from './chain-link.ts';
export type { ExportLine, RecordLine, SignedLine } from './export-line.ts';
export { formatLine, parseLine } from './export-line.ts';
export type { Expected, InvalidExport, ReadHead, SignedHead, ValidExport } from './verification.ts';
export { verifyExport } from './verify-export.ts';
