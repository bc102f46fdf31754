import { type DescMethod, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type CallOptions, createRpcClient } from '@writ/rpc';
import { type Answer, answered } from './answer.ts';
import type { GatewayUnderTest } from './gateway-under-test.ts';
import { AS_CONTRACT, receiptClaims } from './receipt-rules.ts';
import { type CaseNames, callerHeaders, certificateOf, runOf } from './sent-call.ts';
import type { CallFields, Step } from './table.ts';
import type { TestPeers } from './test-peers.ts';

type Fields = Readonly<Record<string, unknown>>;
type AnyCall = (request: unknown, options: CallOptions) => Promise<never>;

/** The RPCs of a case except CallTool. */
export class CaseRpcs {
  readonly #peers: TestPeers;
  readonly #gateway: GatewayUnderTest;
  readonly #names: CaseNames;
  readonly #orders = new Set<string>();

  constructor(peers: TestPeers, gateway: GatewayUnderTest, names: CaseNames) {
    this.#peers = peers;
    this.#gateway = gateway;
    this.#names = names;
  }

  /** Calls an RPC by its local name. */
  async call(name: string, step: Step): Promise<Answer> {
    const service = name in KeyService.method ? KeyService : ToolGatewayService;
    const method: DescMethod | undefined = service.methods.find(
      ({ localName }) => localName === name,
    );
    if (method === undefined) throw new Error(`RPC ${name} does not exist`);
    const headers = this.#headers(step);
    const shown = step.certificate ?? certificateOf(step.by ?? 'supervisor');
    const client = createRpcClient(service, this.#gateway.as(shown));
    try {
      return await answered(async () => {
        const request = fromJson(method.input, this.#withNames(step.request ?? {}) as JsonObject);
        const call = client[name as keyof typeof client] as unknown as AnyCall;
        const response = await call(request, { headers, timeoutMs: 15_000 });
        const view = toJson(method.output, response, AS_CONTRACT) as JsonObject;
        const { receipt: token } = view;
        if (typeof token !== 'string' || token === '') return { view };
        return { view: { ...view, receipt: await receiptClaims(this.#gateway, token) }, token };
      });
    } finally {
      client.close();
    }
  }

  /** Lifts every freeze of the case; called even after a failed step. */
  async liftOrders(): Promise<void> {
    for (const orderId of this.#orders) {
      await this.call('unfreeze', { request: { order_id: orderId } });
    }
  }

  #headers(step: Step) {
    const { by = 'supervisor', audience = 'tool-gateway', agent_token: claims, epoch = 1 } = step;
    return {
      ...callerHeaders(this.#peers, by, audience),
      ...(by === 'worker' ? { 'writ-epoch': String(epoch) } : {}),
      ...(claims && { 'writ-agent-token': this.#agentToken(claims) }),
    };
  }

  #agentToken(over: Fields): string {
    const claims = {
      ...runOf(this.#names, {}),
      session_id: 'session_1',
      agent: { name: 'payer', instance: 'payer-1' },
      priority: 'PRIORITY_NORMAL',
      ...over,
    };
    return this.#peers.supervisor.token({
      kind: 'agent',
      audience: 'tool-gateway',
      subject: claims.agent.instance,
      claims,
      ttlMs: 60_000,
    });
  }

  /**
   * Returns the request with the suffix of this case appended to every tenant, run_id and order_id; omitted fields of
   * `call` get their defaults.
   */
  #withNames(value: unknown, key = ''): unknown {
    if (Array.isArray(value)) return value.map((item: unknown) => this.#withNames(item));
    if (typeof value === 'string') {
      if (key === 'order_id') this.#orders.add(value);
      return ['tenant', 'run_id', 'order_id'].includes(key) ? `${value}-${this.#names.id}` : value;
    }
    if (typeof value !== 'object' || value === null) return value;
    if (key === 'call') {
      const { agent = 'payer-1', call_id = 'op-1', ...rest } = value as CallFields;
      return { ...runOf(this.#names, rest), agent_instance: agent, call_id };
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, this.#withNames(item, name)]),
    );
  }
}
