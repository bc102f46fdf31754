/** The bytes of an address: 4 for IPv4, 16 for IPv6. */
export type IpAddress = Uint8Array;

const IPV4_PART = /^(0|[1-9]\d{0,2})$/;
const IPV6 = /^[0-9a-f:.]*:[0-9a-f:.]*$/i;

/**
 * Parses an IP address as DNS resolvers and sockets return it: IPv4 in dotted decimal, or IPv6 without a zone ID.
 * @returns undefined for anything else, such as a zone (`fe80::1%eth0`) or an octal part
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  return IPV6.test(text) ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): IpAddress | undefined {
  const parts = text.split('.');
  const isAddress = parts.length === 4 && parts.every((part) => IPV4_PART.test(part));
  const bytes = parts.map(Number);
  return isAddress && bytes.every((byte) => byte < 256) ? Uint8Array.from(bytes) : undefined;
}

function parseIpv6(text: string): IpAddress | undefined {
  // The URL parser validates the address and converts an IPv4 suffix to hexadecimal groups.
  const plain = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  if (plain === undefined) return undefined;
  const [head = '', tail] = plain.split('::');
  const before = groups(head);
  const after = groups(tail ?? '');
  const gap = Array<number>(8 - before.length - after.length).fill(0);
  return Uint8Array.from(
    [...before, ...gap, ...after].flatMap((group) => [group >> 8, group & 0xff]),
  );
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

/** A block of addresses, such as `10.0.0.0/8`. */
export interface IpBlock {
  readonly bytes: IpAddress;
  readonly bits: number;
}

/**
 * Parses an address block in CIDR notation. For constants only: the prefix length is not checked. Throws RangeError for
 * an invalid address.
 */
export function ipBlock(text: string): IpBlock {
  const [address = '', bits] = text.split('/');
  const bytes = parseIpAddress(address);
  if (bytes === undefined) throw new RangeError(`${text} is not an address block.`);
  return { bytes, bits: Number(bits) };
}

/** Whether an address is in a block of the same family. */
export function isInBlock(address: IpAddress, { bytes, bits }: IpBlock): boolean {
  if (address.length !== bytes.length) return false;
  return bytes.every((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8));
    const mask = (0xff << (8 - kept)) & 0xff;
    return ((address[index] ?? 0) & mask) === (byte & mask);
  });
}
