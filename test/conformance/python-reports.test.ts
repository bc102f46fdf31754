import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PYTHON_FOLDER } from '../../scripts/python.ts';
import { requirePython } from './python-gateway.ts';

const python = requirePython() ?? '';

/**
 * Delivers one receipt to a supervisor that acknowledges it. The store fails at the first query and at the first
 * acknowledgement, as with a full disk. Prints how often the supervisor received the receipt, and whether the receipt
 * is still pending.
 */
const DELIVER = `
import asyncio, base64, json, pathlib, sqlite3, sys, time
import grpc
from gateway import reports
from gateway.store import Store
from gateway.strict_json import sha256_hex
from gateway.tokens import SigningKey
from writ.supervision.v1 import supervision_service_pb2 as pb
from writ.supervision.v1 import supervision_service_pb2_grpc as rpc

class FullDisk(Store):
    failing = {"open_reports", "acknowledge"}

    def open_reports(self, before, limit):
        self.fail_once("open_reports")
        return super().open_reports(before, limit)

    def acknowledge(self, ids):
        self.fail_once("acknowledge")
        super().acknowledge(ids)

    def fail_once(self, query):
        if query in self.failing:
            self.failing.remove(query)
            raise sqlite3.OperationalError("database or disk is full")

class Supervisor(rpc.SupervisionServiceServicer):
    received = 0

    async def ReportReceipts(self, request, context):
        Supervisor.received += len(request.receipts)
        return pb.ReportReceiptsResponse(acknowledged_receipt_ids=["rct-1"])

reports.RETRY_MAX_S = 0.02

async def main():
    folder = pathlib.Path(sys.argv[1])
    store = FullDisk(folder / "gateway.db")
    claims = base64.urlsafe_b64encode(json.dumps({"jti": "rct-1"}).encode()).decode().rstrip("=")
    receipt = f"header.{claims}.signature"
    store.add_report(sha256_hex(receipt), "receipt", receipt.encode())
    server = grpc.aio.server()
    rpc.add_SupervisionServiceServicer_to_server(Supervisor(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    address = lambda service: f"127.0.0.1:{port}"
    key = SigningKey(folder / "keys")
    task = asyncio.create_task(reports.deliver_reports(store, key, address, 0.0))
    def is_pending():
        return bool(Store.open_reports(store, time.time(), 1))
    while is_pending() and not task.done():
        await asyncio.sleep(0.02)
    print(f"received {Supervisor.received}, pending {is_pending()}")
    task.cancel()
    await server.stop(0)

asyncio.run(main())
`;

describe.skipIf(python === '')('receipt delivery by the gateway in Python', () => {
  it('continues after an error of the store (TG-8)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-reports-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const options = {
      cwd: PYTHON_FOLDER,
      encoding: 'utf8',
      stdio: 'pipe',
      timeout: 60_000,
    } as const;
    expect(execFileSync(python, ['-c', DELIVER, folder], options).trim()).toBe(
      'received 2, pending False',
    );
  });

  it('logs the message of an error of the store, with a stack (TG-8)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-reports-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { stderr } = spawnSync(python, ['-c', DELIVER, folder], {
      cwd: PYTHON_FOLDER,
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(stderr).toContain(
      "receipts were not delivered: OperationalError('database or disk is full')",
    );
    expect(stderr).toContain('Traceback');
  });
});
