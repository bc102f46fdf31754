import { BlockList } from 'node:net';
import type { Manifest } from './render-chart.ts';

type Labels = Readonly<Record<string, string>>;

/** Somebody on the network: a pod of the release's namespace or of another, or an address outside. */
export type Place =
  | { readonly labels: Labels; readonly namespace?: Labels }
  | { readonly address: string };

interface Selector {
  readonly matchLabels?: Labels;
}

interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly port: number; readonly protocol: string }[];
}

/**
 * Whether NetworkPolicies let a TCP connection through: the policies of whoever calls must let it out, and
 * those of whoever is called must let it in.
 */
export function canReach(
  policies: readonly Manifest[],
  from: Place,
  to: Place,
  port: number,
): boolean {
  return isLet(policies, 'egress', from, to, port) && isLet(policies, 'ingress', to, from, port);
}

function isLet(
  policies: readonly Manifest[],
  direction: 'ingress' | 'egress',
  whose: Place,
  other: Place,
  port: number,
): boolean {
  // Nobody's policies hold for pods of other namespaces, or for what is outside.
  if ('address' in whose || whose.namespace !== undefined) return true;
  const type = direction === 'ingress' ? 'Ingress' : 'Egress';
  const own = policies.filter(
    ({ spec }) => spec.policyTypes.includes(type) && fits(spec.podSelector, whose.labels),
  );
  if (own.length === 0) return true;
  const rules: Rule[] = own.flatMap(({ spec }) => spec[direction] ?? []);
  return rules.some((rule) => {
    const peers = direction === 'ingress' ? rule.from : rule.to;
    const isPort = rule.ports?.some((one) => one.port === port && one.protocol === 'TCP') ?? true;
    return isPort && (peers?.some((peer) => isPeer(peer, other)) ?? true);
  });
}

function isPeer({ podSelector, namespaceSelector, ipBlock }: Peer, place: Place): boolean {
  if ('address' in place) return ipBlock !== undefined && isInBlock(ipBlock, place.address);
  if (ipBlock !== undefined) return false;
  const isNamespace =
    namespaceSelector === undefined
      ? place.namespace === undefined
      : fits(namespaceSelector, place.namespace ?? {});
  return isNamespace && fits(podSelector ?? {}, place.labels);
}

function fits({ matchLabels = {} }: Selector, labels: Labels): boolean {
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}

function isInBlock({ cidr, except = [] }: NonNullable<Peer['ipBlock']>, address: string): boolean {
  const isIn = (block: string): boolean => {
    const [net = '', prefix = ''] = block.split('/');
    const list = new BlockList();
    list.addSubnet(net, Number(prefix));
    return list.check(address);
  };
  return isIn(cidr) && !except.some(isIn);
}
