import type { Logger, Metrics } from '@writ/telemetry';
import type { Lifetime, TlsMaterial } from './tls-material.ts';

/** What a certificate is shown for. */
export type CertificateUse = 'service' | 'edge';

/** What {@link Expiry} tells by. */
export interface ExpiryOptions {
  /** Whose files they are, in metrics and in the log. */
  readonly use: CertificateUse;
  readonly certFile: string;
  readonly caFile?: string | undefined;
  readonly log: Logger;
}

const DAY_MS = 86_400_000;
/** When it is told of, the earliest first: at this share of a certificate's life, or so long before its end. */
const WARNINGS = [
  { share: 1 / 5, mostMs: 30 * DAY_MS },
  { share: 1 / 20, mostMs: 3 * DAY_MS },
] as const;

/** Tells of certificates that are about to end, each once at a fifth and at a twentieth of its life, and when it is over. */
export class Expiry {
  readonly #options: ExpiryOptions;
  /** How much was told of each, by fingerprint. */
  #told = new Map<string, number>();

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Looks at what is in use now. */
  look({ own, authorities }: TlsMaterial, now: number): void {
    const { use, certFile, caFile } = this.#options;
    const told = new Map<string, number>();
    const one = (certificate: string, file: string | undefined, life: Lifetime): void => {
      const stage = stageOf(life, now);
      told.set(life.fingerprint, stage);
      if (stage <= (this.#told.get(life.fingerprint) ?? 0)) return;
      const { notAfter, fingerprint } = life;
      const hoursLeft = Math.max(0, Math.round((notAfter.getTime() - now) / 3_600_000));
      const fields = { certificate, file, fingerprint, not_after: notAfter.toISOString() };
      const { log } = this.#options;
      if (stage > WARNINGS.length) log.error(fields, 'A TLS certificate has expired.');
      else log.warn({ ...fields, hours_left: hoursLeft }, 'A TLS certificate expires soon.');
    };
    one(use, certFile, own);
    for (const authority of authorities) one('authority', caFile, authority);
    this.#told = told;
  }
}

/** 0: far from its end; then one more for each warning that is due, and one for the end itself. */
function stageOf({ notBefore, notAfter }: Lifetime, now: number): number {
  const left = notAfter.getTime() - now;
  if (left <= 0) return WARNINGS.length + 1;
  const life = notAfter.getTime() - notBefore.getTime();
  return WARNINGS.filter(({ share, mostMs }) => left <= Math.min(life * share, mostMs)).length;
}

/** Has the time that is left of each certificate in use measured, in seconds; negative once it is over. */
export function observeExpiry(
  metrics: Metrics,
  use: CertificateUse,
  current: () => TlsMaterial | undefined,
): void {
  metrics.observe('certificateExpiry', () => {
    const material = current();
    if (material === undefined) return [];
    const left = ({ notAfter }: Lifetime) => (notAfter.getTime() - Date.now()) / 1000;
    return [
      { value: left(material.own), labels: { 'writ.certificate': use } },
      ...material.authorities.map((authority) => ({
        value: left(authority),
        labels: { 'writ.certificate': 'authority', 'writ.fingerprint': authority.fingerprint },
      })),
    ];
  });
}
