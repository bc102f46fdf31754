import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openSigner, SERVICE_NAMES, type Signer } from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';

/** Options of every command of `writ signing-keys`. */
export interface KeyOptions extends FormatOptions {
  readonly data?: string;
}

/** Options of `writ signing-keys revoke`. */
export interface RevokeOptions extends KeyOptions {
  readonly key: string;
}

/** Prints the keys of every service that has a key file in the data folder. */
export async function listSigningKeys(options: KeyOptions, io: CliIo): Promise<Exit> {
  const services = SERVICE_NAMES.filter((service) => existsSync(fileOf(service, options, io)));
  if (services.length === 0) throw noKeyFile(fileOf('<service>', options, io));
  const signers = await Promise.all(services.map((service) => open(service, options, io)));
  showKeys(signers, options, io);
  return EXIT.success;
}

/** Replaces the signing key of a service, and prints the keys of the service. */
export async function rotateSigningKey(
  service: string,
  options: KeyOptions,
  io: CliIo,
): Promise<Exit> {
  const signer = await open(service, options, io);
  await signer.rotate();
  showKeys([signer], options, io);
  return EXIT.success;
}

/** Revokes a key of a service, and prints the keys of the service; fails if the service has no such key. */
export async function revokeSigningKey(
  service: string,
  options: RevokeOptions,
  io: CliIo,
): Promise<Exit> {
  const signer = await open(service, options, io);
  if (!(await signer.revoke(options.key))) {
    io.warn(`Key ${options.key} of ${service} does not exist.`);
    return EXIT.failure;
  }
  showKeys([signer], options, io);
  io.warn(
    'Running services can accept the revoked key for 65 minutes; restart them to prevent it.',
  );
  return EXIT.success;
}

function showKeys(signers: readonly Signer[], options: KeyOptions, io: CliIo): void {
  const keys = signers.flatMap((signer) =>
    signer.publicKeys().map(({ keyId, notBefore, notAfter }) => {
      return { service: signer.service, keyId, notBefore, notAfter };
    }),
  );
  showData(io, options, { keys }, () =>
    keys.map(({ service, keyId, notBefore, notAfter }) => {
      const end = notAfter === undefined ? 'signing' : `until ${notAfter.toISOString()}`;
      return [service, keyId, `from ${notBefore.toISOString()}`, end].join('  ');
    }),
  );
}

async function open(service: string, options: KeyOptions, io: CliIo): Promise<Signer> {
  const known = SERVICE_NAMES.find((name) => name === service);
  const file = fileOf(service, options, io);
  // A signer creates a missing file, with a key that no service uses.
  if (known === undefined || !existsSync(file)) throw noKeyFile(file);
  return await openSigner({ service: known, keyDir: keyDirOf(options, io), clock: systemClock });
}

function noKeyFile(file: string): InvalidRequestError {
  const remedy = 'set --data to the data folder of the service';
  return new InvalidRequestError('INVALID_FILE', `${file} does not exist; ${remedy}.`, { file });
}

function fileOf(service: string, options: KeyOptions, io: CliIo): string {
  return join(keyDirOf(options, io), `${service}.jwks.json`);
}

function keyDirOf({ data }: KeyOptions, { env }: CliIo): string {
  return join(data ?? (env.WRIT_DATA || '.writ'), 'keys');
}
