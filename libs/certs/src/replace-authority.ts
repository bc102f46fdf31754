import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replacePrivate } from '@writ/identity';
import { PreconditionError } from '@writ/kernel';
import type { CertificateWithKey } from './authority.ts';
import {
  type CertificateFolderOptions,
  filesOf,
  issueBy,
  newAuthority,
  readAuthority,
  type WrittenCertificate,
} from './certificate-folder.ts';

const AUTHORITY = 'ca';
/** Base name of the files of the new authority from the first to the second step. */
const NEXT = 'ca-next';

/**
 * First step of replacing the authority of a folder: creates a new authority, trusted in addition to the old
 * one, which still signs. The step can be repeated after an interruption.
 * @param authorityLifeMs lifetime of the new authority
 * @throws PreconditionError REPLACEMENT_IN_PROGRESS, AUTHORITY_NOT_FOUND, AUTHORITY_EXPIRED
 */
export async function beginReplacement(
  options: CertificateFolderOptions,
  authorityLifeMs: number,
): Promise<void> {
  const { dir } = options;
  const { signing, others } = readAuthority(dir);
  if (others.length > 0)
    throw new PreconditionError(
      'REPLACEMENT_IN_PROGRESS',
      `${filesOf(dir, AUTHORITY).certFile} already contains more than one authority: continue with the step ${existsSync(filesOf(dir, NEXT).keyFile) ? 'issue' : 'finish'}.`,
      {},
    );
  const next = readNext(dir) ?? (await newAuthority(options, authorityLifeMs));
  replacePrivate(filesOf(dir, NEXT).keyFile, next.key);
  replacePrivate(filesOf(dir, NEXT).certFile, next.cert);
  replacePrivate(filesOf(dir, AUTHORITY).certFile, signing.cert + next.cert);
}

/**
 * Second step, after all services trust both authorities: the new authority issues all certificates and signs from now
 * on. The old authority is still trusted, but its key is deleted.
 * @throws PreconditionError REPLACEMENT_NOT_STARTED when the first step was not completed, CERTIFICATES_NOT_RENEWED
 *   when the folder has other certificates than those of `options`, AUTHORITY_NOT_FOUND, AUTHORITY_EXPIRED,
 *   TRUST_DOMAIN_MISMATCH
 */
export async function issueReplacement(
  options: CertificateFolderOptions,
): Promise<readonly WrittenCertificate[]> {
  const { dir, services, others = [] } = options;
  const { signing, others: trusted } = readAuthority(dir);
  const next = readNext(dir);
  const isTrusted = [signing.cert, ...trusted].some((cert) => cert === next?.cert);
  if (next === undefined || !isTrusted) throw noReplacement(dir, 'begin');
  const named = new Set<string>([...services, ...others]);
  const left = namesIn(dir).filter((name) => !named.has(name));
  if (left.length > 0)
    throw new PreconditionError(
      'CERTIFICATES_NOT_RENEWED',
      `${dir} also has certificates for ${left.join(', ')}, which would keep the old authority: name them with --also.`,
      {},
    );
  const written = await issueBy(next, options);
  const old = [signing.cert, ...trusted].filter((cert) => cert !== next.cert);
  replacePrivate(filesOf(dir, AUTHORITY).certFile, [next.cert, ...old].join(''));
  replacePrivate(filesOf(dir, AUTHORITY).keyFile, next.key);
  rmSync(filesOf(dir, NEXT).keyFile);
  rmSync(filesOf(dir, NEXT).certFile);
  return written;
}

/**
 * Last step, after all services use certificates of the new authority: removes the old authority.
 * @throws PreconditionError REPLACEMENT_NOT_STARTED when a previous step was not completed, CERTIFICATES_NOT_RENEWED
 *   when a certificate in the folder was not issued by the new authority, AUTHORITY_NOT_FOUND, AUTHORITY_EXPIRED
 */
export function finishReplacement({ dir }: Pick<CertificateFolderOptions, 'dir'>): void {
  const { signing, others } = readAuthority(dir);
  if (others.length === 0) throw noReplacement(dir, 'begin');
  if (existsSync(filesOf(dir, NEXT).keyFile)) throw noReplacement(dir, 'issue');
  const authority = new X509Certificate(signing.cert);
  const outdated = namesIn(dir).find((name) => {
    const certificate = new X509Certificate(readFileSync(filesOf(dir, name).certFile));
    return !certificate.verify(authority.publicKey);
  });
  if (outdated !== undefined)
    throw new PreconditionError(
      'CERTIFICATES_NOT_RENEWED',
      `${filesOf(dir, outdated).certFile} was not issued by the new authority: renew it first.`,
      {},
    );
  replacePrivate(filesOf(dir, AUTHORITY).certFile, signing.cert);
}

/** Reads the new authority; undefined when it does not exist or is incomplete. */
function readNext(dir: string): CertificateWithKey | undefined {
  const { certFile, keyFile } = filesOf(dir, NEXT);
  if (!existsSync(certFile) || !existsSync(keyFile)) return undefined;
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
}

/** Returns the names of the certificates of a folder, without its authorities. */
function namesIn(dir: string): readonly string[] {
  return readdirSync(dir)
    .flatMap((file) => /^(.+)\.crt$/.exec(file)?.[1] ?? [])
    .filter((name) => name !== AUTHORITY && name !== NEXT && existsSync(join(dir, `${name}.key`)))
    .sort();
}

function noReplacement(dir: string, step: string): PreconditionError {
  return new PreconditionError(
    'REPLACEMENT_NOT_STARTED',
    `The replacement of the authority of ${dir} has not reached this step: run the step ${step} first.`,
    {},
  );
}
