import { type IpAddress, ipBlock, isInBlock, parseIpAddress } from './ip-address.ts';

/** Reason why an address is not on the public internet. */
export type AddressRule =
  | 'not_an_address'
  | 'unspecified'
  | 'loopback'
  | 'private'
  | 'cgnat'
  | 'link_local'
  | 'metadata'
  | 'multicast'
  | 'broadcast'
  | 'reserved'
  | 'mapped'
  | 'compatible'
  | 'nat64'
  | 'teredo'
  | 'six_to_four'
  | 'isatap';

/** The first matching block decides, so specific blocks come before wide blocks. */
const BLOCKS = (
  [
    // Metadata endpoints of cloud providers, which serve credentials.
    ['169.254.169.254/32', 'metadata'],
    ['169.254.170.0/24', 'metadata'],
    ['100.100.100.200/32', 'metadata'],
    ['168.63.129.16/32', 'metadata'],
    ['192.0.0.192/32', 'metadata'],
    ['fd00:ec2::/32', 'metadata'],
    ['fd20:ce::254/128', 'metadata'],
    // IANA IPv4 Special-Purpose Address Registry.
    ['0.0.0.0/8', 'unspecified'],
    ['10.0.0.0/8', 'private'],
    ['100.64.0.0/10', 'cgnat'],
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link_local'],
    ['172.16.0.0/12', 'private'],
    ['192.0.0.0/24', 'reserved'],
    ['192.0.2.0/24', 'reserved'],
    ['192.31.196.0/24', 'reserved'],
    ['192.52.193.0/24', 'reserved'],
    ['192.88.99.0/24', 'six_to_four'],
    ['192.168.0.0/16', 'private'],
    ['192.175.48.0/24', 'reserved'],
    ['198.18.0.0/15', 'reserved'],
    ['198.51.100.0/24', 'reserved'],
    ['203.0.113.0/24', 'reserved'],
    ['224.0.0.0/4', 'multicast'],
    ['255.255.255.255/32', 'broadcast'],
    ['240.0.0.0/4', 'reserved'],
    // IANA IPv6 Special-Purpose Address Registry, and blocks that embed IPv4 addresses.
    ['::/128', 'unspecified'],
    ['::1/128', 'loopback'],
    ['::ffff:0:0/96', 'mapped'],
    ['::ffff:0:0:0/96', 'mapped'],
    ['::/96', 'compatible'],
    ['64:ff9b::/96', 'nat64'],
    ['64:ff9b:1::/48', 'nat64'],
    ['2001::/32', 'teredo'],
    ['2001::/23', 'reserved'],
    ['2001:db8::/32', 'reserved'],
    ['2002::/16', 'six_to_four'],
    ['2620:4f:8000::/48', 'reserved'],
    ['3fff::/20', 'reserved'],
    ['fc00::/7', 'private'],
    ['fe80::/10', 'link_local'],
    ['fec0::/10', 'private'],
    ['ff00::/8', 'multicast'],
  ] as const
).map(([block, rule]) => ({ block: ipBlock(block), rule }));

/** The only IPv6 block that is allocated for the public internet; addresses outside it are rejected. */
const GLOBAL_UNICAST = ipBlock('2000::/3');

/**
 * The reason why a tool may not connect to an address (TG-9).
 * @returns undefined for an address of the public internet
 */
export function refusedAddress(text: string): AddressRule | undefined {
  const address = parseIpAddress(text);
  if (address === undefined) return 'not_an_address';
  const found = BLOCKS.find(({ block }) => isInBlock(address, block));
  if (found !== undefined) return found.rule;
  if (address.length === 4) return undefined;
  if (!isInBlock(address, GLOBAL_UNICAST)) return 'reserved';
  return isIsatap(address) ? 'isatap' : undefined;
}

/**
 * Whether the interface identifier is `0:5efe` or `200:5efe` followed by an IPv4 address, with any prefix (RFC 5214).
 */
function isIsatap(address: IpAddress): boolean {
  const [first = 0, ...rest] = address.subarray(8, 12);
  return (first & 0xfd) === 0 && rest[0] === 0 && rest[1] === 0x5e && rest[2] === 0xfe;
}
