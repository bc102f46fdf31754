/**
 * `prepare FOLDER`: generates a signing key and a certificate for each service, and a certificate for NATS and for
 * PostgreSQL, each in its own folder (or volume) below FOLDER. The authority in `FOLDER/authority` issues the
 * certificates. A repeated run renews them; running services reload the renewed certificates.
 */
import { prepare } from './credentials.ts';

if (process.argv[2] !== undefined) await prepare(process.argv[2]);
