import { BlockList } from 'node:net';
import type { Manifest } from './render-chart.ts';

type Labels = Readonly<Record<string, string>>;

/** A network peer: a pod in the namespace of the release or in another, or an external address. */
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
 * Returns whether NetworkPolicies permit a TCP connection: the policies of the client must permit the egress, and the
 * policies of the server must permit the ingress.
 */
export function canReach(
  policies: readonly Manifest[],
  from: Place,
  to: Place,
  port: number,
): boolean {
  return (
    isPermitted(policies, 'egress', from, to, port) &&
    isPermitted(policies, 'ingress', to, from, port)
  );
}

function isPermitted(
  policies: readonly Manifest[],
  direction: 'ingress' | 'egress',
  subject: Place,
  other: Place,
  port: number,
): boolean {
  // The policies do not apply to pods of other namespaces, or to external addresses.
  if ('address' in subject || subject.namespace !== undefined) return true;
  const type = direction === 'ingress' ? 'Ingress' : 'Egress';
  const own = policies.filter(
    ({ spec }) => spec.policyTypes.includes(type) && matches(spec.podSelector, subject.labels),
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
      : matches(namespaceSelector, place.namespace ?? {});
  return isNamespace && matches(podSelector ?? {}, place.labels);
}

function matches({ matchLabels = {} }: Selector, labels: Labels): boolean {
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
