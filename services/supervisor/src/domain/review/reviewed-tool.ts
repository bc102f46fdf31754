import type { ArgumentContract } from '@writ/kernel';

/** A tool as the gateway defines it, as far as reviews are concerned. */
export interface ReviewedTool {
  readonly name: string;
  /** The gateway's own digest of the definition; a writ names it (TG-1). */
  readonly definitionDigest: string;
  /** What it takes, compiled from the gateway's schema (TG-3). */
  readonly contract: ArgumentContract;
  /** 0 to 100. */
  readonly risk: number;
}

/** A risk of 0 to 1, as contracts have it, on the scale of policies: 0 to 100. */
export function toPolicyRisk(risk: number): number {
  // 0.29 * 100 is not 29.
  return Math.round(risk * 10_000) / 100;
}

/** A policy's risk of 0 to 100 on the scale of contracts. */
export function toContractRisk(risk: number): number {
  return Math.round(risk * 100) / 10_000;
}
