/**
 * `health SERVICE`: asks a service of this container for its health, with the certificate that the
 * service itself shows where there is one. Ends with 0 only when it is serving. It imports nothing, since
 * it runs every few seconds.
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
};

async function isServing(service: string): Promise<boolean> {
  const name = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_PORT`;
  const place = `127.0.0.1:${process.env[name] || PORTS[service]}`;
  const { WRIT_TLS_CERT_FILE: cert, WRIT_TLS_KEY_FILE: key, WRIT_TLS_CA_FILE: ca } = process.env;
  const session =
    cert && key && ca
      ? connect(`https://${place}`, {
          cert: readFileSync(cert),
          key: readFileSync(key),
          ca: readFileSync(ca),
          servername: `${service}.writ`,
          // Whom it names is for callers to check; this one is its own, on loopback.
          checkServerIdentity: () => undefined,
        })
      : connect(`http://${place}`);
  const answer = Promise.withResolvers<Buffer>();
  session.once('error', answer.reject);
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
  call.setTimeout(TIMEOUT_MS, () => answer.reject(new Error('No answer in time.')));
  call.end(REQUEST);
  try {
    return (await answer.promise).equals(SERVING);
  } finally {
    session.destroy();
  }
}

const [service = ''] = process.argv.slice(2);
try {
  const serving = await isServing(service);
  console.log(serving ? 'SERVING' : 'NOT_SERVING');
  process.exitCode = serving ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
