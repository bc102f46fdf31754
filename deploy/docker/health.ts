/**
 * `health SERVICE`: checks the health of a service in this container, with the certificate of the service if it has
 * one. Exits with 0 only if the service is serving. With the second argument `alive`, also exits with 0 if the service
 * reports NOT_SERVING or completes the TLS handshake, even if it then rejects the certificate, because a service that
 * responds does not hang. The script imports no packages, because it runs frequently.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';

const TIMEOUT_MS = 3_000;
/** An uncompressed gRPC message without content: HealthCheckRequest for the whole server. */
const REQUEST = Buffer.alloc(5);
/** HealthCheckResponse with status SERVING. */
const SERVING = Buffer.from([0, 0, 0, 0, 2, 8, 1]);
const PORTS: Readonly<Record<string, number>> = {
  supervisor: 50_051,
  'spawn-budget': 50_052,
  'execution-meter': 50_053,
  'tool-gateway': 50_054,
  'agent-worker': 50_055,
  'agent-proxy': 50_056,
};

/** The health response of a service. @param onHandshake called after the TLS handshake, before any response */
async function ask(service: string, isLiveness: boolean, onHandshake: () => void): Promise<Buffer> {
  const name = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_PORT`;
  const place = `127.0.0.1:${process.env[name] || PORTS[service]}`;
  const { WRIT_TLS_CERT_FILE: cert, WRIT_TLS_KEY_FILE: key, WRIT_TLS_CA_FILE: ca } = process.env;
  const isTls = Boolean(cert && key && ca);
  const session =
    cert && key && ca
      ? connect(`https://${place}`, {
          cert: readFileSync(cert),
          key: readFileSync(key),
          ca: readFileSync(ca),
          servername: `${service}.writ`,
          // The name in the certificate is not checked, because this connection is local.
          checkServerIdentity: () => undefined,
          rejectUnauthorized: !isLiveness,
        })
      : connect(`http://${place}`);
  const answer = Promise.withResolvers<Buffer>();
  session.once('error', answer.reject);
  if (isTls) session.once('connect', onHandshake);
  const call = session.request({
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const chunks: Buffer[] = [];
  call.on('data', (chunk: Buffer) => chunks.push(chunk));
  call.once('error', answer.reject);
  call.once('end', () => answer.resolve(Buffer.concat(chunks)));
  // The timeout starts here, independent of the state of the connection.
  const timer = setTimeout(
    () => answer.reject(new Error('The health check timed out.')),
    TIMEOUT_MS,
  );
  call.end(REQUEST);
  try {
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    session.destroy();
  }
}

const [service = '', wanted] = process.argv.slice(2);
const isLiveness = wanted === 'alive';
let exitCode = 1;
try {
  const answer = await ask(service, isLiveness, () => {
    if (isLiveness) exitCode = 0;
  });
  const serving = answer.equals(SERVING);
  console.log(serving ? 'SERVING' : 'NOT_SERVING');
  if (serving || (isLiveness && answer.length > 0)) exitCode = 0;
} catch (error) {
  // If the connection fails, its error is the cause of the error of the call.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  console.error(cause instanceof Error ? cause.message : cause);
}
process.exitCode = exitCode;
