/**
 * `prepare FOLDER`: generates the credentials of each service in a separate folder (or volume) below
 * FOLDER: a signing key, and a certificate of the authority in `FOLDER/authority`; and
 * certificates for NATS and PostgreSQL. A repeated run renews the certificates; running services reload
 * them.
 */
import { prepare } from './credentials.ts';

if (process.argv[2] !== undefined) await prepare(process.argv[2]);
