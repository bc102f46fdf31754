import { type FaultProxy, type ProxyFault, startFaultProxy } from '../faults/index.ts';
import { type PartName, type Selector, selects } from './parts.ts';

interface Link {
  readonly from: PartName;
  readonly to: PartName;
  readonly proxy: FaultProxy;
}

/** The fault proxies between the parts of a platform, one for each caller and target. */
export class FaultProxies {
  readonly #targets: ReadonlyMap<PartName, string>;
  readonly #links: Link[] = [];
  readonly #areOpened: boolean;

  /**
   * @param targets `host:port` of every part that accepts connections
   * @param areOpened whether proxies are opened; otherwise callers connect to the targets
   */
  constructor(targets: ReadonlyMap<PartName, string>, areOpened = true) {
    this.#targets = targets;
    this.#areOpened = areOpened;
  }

  /** Opens a proxy if `areOpened` is true. @returns `host:port` for `from` to call */
  async open(from: PartName, to: PartName): Promise<string> {
    const target = this.#targets.get(to) ?? '';
    if (!this.#areOpened) return target;
    const proxy = await startFaultProxy(target);
    this.#links.push({ from, to, proxy });
    return proxy.address;
  }

  /**
   * Injects a fault into every connection from `from` to `to`, but not into connections in the opposite direction.
   * @throws Error when no proxy matches
   */
  fail(from: Selector, to: Selector, fault: ProxyFault): void {
    this.#failAll(this.#between(from, to), `from ${from} to ${to}`, fault);
  }

  /**
   * Cuts every connection between the two, in both directions.
   * @throws Error when no proxy matches
   */
  cut(one: Selector, other: Selector): void {
    const links = [...this.#between(one, other), ...this.#between(other, one)];
    this.#failAll(links, `between ${one} and ${other}`, 'down');
  }

  /** Removes every fault. */
  heal(): void {
    for (const { proxy } of this.#links) proxy.fail('none');
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.splice(0).map(({ proxy }) => proxy.close()));
  }

  #between(from: Selector, to: Selector): Link[] {
    return this.#links.filter((link) => selects(from, link.from) && selects(to, link.to));
  }

  #failAll(links: readonly Link[], where: string, fault: ProxyFault): void {
    if (links.length === 0) throw new Error(`No proxy exists ${where}.`);
    for (const { proxy } of links) proxy.fail(fault);
  }
}
