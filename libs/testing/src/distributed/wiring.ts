import { type FaultProxy, type ProxyFault, startFaultProxy } from '../faults/index.ts';
import { type PartName, type Selector, selects } from './parts.ts';

interface Laid {
  readonly from: PartName;
  readonly to: PartName;
  readonly wire: FaultProxy;
}

/** The wires between the parts of a platform: one for each who calls and each who is called. */
export class Wiring {
  readonly #targets: ReadonlyMap<PartName, string>;
  readonly #laid: Laid[] = [];

  /** @param targets `host:port` of whoever can be called */
  constructor(targets: ReadonlyMap<PartName, string>) {
    this.#targets = targets;
  }

  /** Lays a wire. @returns `host:port` for `from` to call */
  async lay(from: PartName, to: PartName): Promise<string> {
    const wire = await startFaultProxy(this.#targets.get(to) ?? '');
    this.#laid.push({ from, to, wire });
    return wire.address;
  }

  /**
   * What becomes of every connection that `from` makes to `to`; connections the other way are others.
   * @throws Error when there is no such wire
   */
  fail(from: Selector, to: Selector, fault: ProxyFault): void {
    this.#failAll(this.#between(from, to), `from ${from} to ${to}`, fault);
  }

  /**
   * Cuts every connection between the two, whoever calls.
   * @throws Error when there is no such wire
   */
  cut(one: Selector, other: Selector): void {
    const meant = [...this.#between(one, other), ...this.#between(other, one)];
    this.#failAll(meant, `between ${one} and ${other}`, 'down');
  }

  /** Mends every wire. */
  heal(): void {
    for (const { wire } of this.#laid) wire.fail('none');
  }

  async close(): Promise<void> {
    await Promise.all(this.#laid.splice(0).map(({ wire }) => wire.close()));
  }

  #between(from: Selector, to: Selector): Laid[] {
    return this.#laid.filter((one) => selects(from, one.from) && selects(to, one.to));
  }

  #failAll(meant: readonly Laid[], where: string, fault: ProxyFault): void {
    if (meant.length === 0) throw new Error(`There is no wire ${where}.`);
    for (const { wire } of meant) wire.fail(fault);
  }
}
