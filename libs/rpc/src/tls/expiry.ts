import type { Logger, Metrics } from '@writ/telemetry';
import type { Lifetime, TlsMaterial } from './tls-material.ts';

/** The use of a certificate. */
export type CertificateUse = 'service' | 'edge';

/** Options of {@link Expiry}. */
export interface ExpiryOptions {
  /** The use of the certificate, for metrics and the log. */
  readonly use: CertificateUse;
  readonly certFile: string;
  readonly caFile?: string | undefined;
  readonly log: Logger;
}

const DAY_MS = 86_400_000;
/** The warnings, earliest first: due when `share` of the lifetime is left, but at most `mostMs` before its end. */
const WARNINGS = [
  { share: 1 / 5, mostMs: 30 * DAY_MS },
  { share: 1 / 20, mostMs: 3 * DAY_MS },
] as const;

/**
 * Logs certificates that are about to expire, each at most three times: when a fifth of its lifetime, but at most 30
 * days, is left; when a twentieth, but at most 3 days, is left; and when it has expired.
 */
export class Expiry {
  readonly #options: ExpiryOptions;
  /** The last logged level of each certificate, by fingerprint. */
  #logged = new Map<string, number>();

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Checks the certificates in use. */
  check({ own, authorities }: TlsMaterial, now: number): void {
    const { use, certFile, caFile } = this.#options;
    const logged = new Map<string, number>();
    const checkOne = (certificate: string, file: string | undefined, life: Lifetime): void => {
      const level = levelOf(life, now);
      logged.set(life.fingerprint, level);
      if (level <= (this.#logged.get(life.fingerprint) ?? 0)) return;
      const { notAfter, fingerprint } = life;
      const hoursLeft = Math.max(0, Math.round((notAfter.getTime() - now) / 3_600_000));
      const fields = { certificate, file, fingerprint, not_after: notAfter.toISOString() };
      const { log } = this.#options;
      if (level > WARNINGS.length) log.error(fields, 'TLS certificate expired');
      else log.warn({ ...fields, hours_left: hoursLeft }, 'TLS certificate expires soon');
    };
    checkOne(use, certFile, own);
    for (const authority of authorities) checkOne('authority', caFile, authority);
    this.#logged = logged;
  }
}

/** Returns the number of warnings that are due; after expiry, the number of all warnings plus one. */
function levelOf({ notBefore, notAfter }: Lifetime, now: number): number {
  const left = notAfter.getTime() - now;
  if (left <= 0) return WARNINGS.length + 1;
  const life = notAfter.getTime() - notBefore.getTime();
  return WARNINGS.filter(({ share, mostMs }) => left <= Math.min(life * share, mostMs)).length;
}

/** Registers the metric of the time until each certificate expires, seconds; negative after expiry. */
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
